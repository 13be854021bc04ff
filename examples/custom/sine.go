package main

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/portable"
)

// sine is the layer y = sin(omega·x). No Backend has a kernel for sines, so it computes
// them on the host. Read and Copy work with the memory of every backend; on a GPU they
// wait for it and cost two transfers. The functions of nn/portable, unlike those of math,
// have the same bits on every processor.
type sine struct{ omega float32 }

// Init implements nn.Layer.
func (s *sine) Init(in, _ []int, b *nn.Builder) ([]int, error) {
	b.OnHost()
	return in, nil
}

// Forward implements nn.Layer.
func (s *sine) Forward(p *nn.Pass, x nn.Tensor) (nn.Tensor, nn.Backprop) {
	in, out := make([]float32, x.Data.Len()), make([]float32, x.Data.Len())
	p.Backend.Read(in, x.Data)
	for i, v := range in {
		out[i] = float32(portable.Sin(float64(s.omega * v)))
	}
	y := nn.Tensor{Shape: x.Shape, Data: p.Backend.Temp(len(out)), Lengths: x.Lengths}
	p.Backend.Copy(y.Data, out)
	return y, func(dy nn.Tensor) nn.Tensor {
		p.Backend.Read(out, dy.Data)
		for i, d := range out {
			out[i] = d * s.omega * float32(portable.Cos(float64(s.omega*in[i])))
		}
		p.Backend.Copy(dy.Data, out) // a layer may overwrite dy
		return dy
	}
}
