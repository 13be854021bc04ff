package nn

import (
	"slices"
)

type concatenate struct {
	branches
	widths []int // of each layer's rows
	width  int
	shape  []int
}

// Concatenate puts the results of layers that get the same input one after the other;
// Thinc's concatenate.v1. It joins rows along their first dimension, the channels of
// images; the other dimensions must be equal. The parameters of layer i are in the scope
// "layers.i". For sequences, use [EachPosition].
func Concatenate(layers ...Layer) Layer {
	return &concatenate{branches: branches{layers: layers}}
}

// Init adds up the first dimensions.
func (l *concatenate) Init(in, out []int, b *Builder) ([]int, error) {
	made, err := l.declare(in, nil, b)
	if err != nil {
		return nil, err
	}
	first := 0
	l.widths, l.width = nil, 0
	for i, shape := range made {
		if len(shape) == 0 || len(shape) != len(made[0]) || !sameShape(shape[1:], made[0][1:]) {
			return nil, b.errorf("layers.%d returns rows of shape %v, but layers.0 returns %v; they may differ only in the first dimension", i, shape, made[0])
		}
		first += shape[0]
		l.widths = append(l.widths, product(shape))
		l.width += product(shape)
	}
	l.shape = slices.Concat([]int{first}, made[0][1:])
	return outShape(l.shape, out, b)
}

// Forward copies the results into one row.
func (l *concatenate) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	ys, backs := l.forward(p, x)
	y := Tensor{Shape: slices.Concat([]int{x.Rows()}, l.shape), Data: p.Backend.Temp(x.Rows() * l.width), Lengths: x.Lengths}
	at := 0
	for i, part := range ys {
		p.Backend.Insert(y.Data, part.Data, l.width, at, l.widths[i])
		at += l.widths[i]
	}
	return y, func(dy Tensor) Tensor {
		at := l.width
		return l.backward(p, x, backs, func(i int) Tensor {
			at -= l.widths[i]
			d := Tensor{Shape: ys[i].Shape, Data: p.Backend.Temp(ys[i].Data.Len()), Lengths: ys[i].Lengths}
			p.Backend.Extract(d.Data, dy.Data, l.width, at, l.widths[i])
			return d
		})
	}
}
