package nn

import (
	"math"
)

// Standardize is y = (x - Mean)/Deviation with constants known in advance; torchvision's
// Normalize for one channel.
type Standardize struct {
	Mean, Deviation float64 // Deviation must be greater than 0
}

// Init declares no parameters and returns in.
func (l *Standardize) Init(in, out []int, b *Builder) ([]int, error) {
	if !(l.Deviation > 0) || math.IsInf(l.Deviation, 0) || math.IsNaN(l.Mean) || math.IsInf(l.Mean, 0) {
		return nil, b.errorf("Mean is %v and Deviation is %v; both must be finite and Deviation greater than 0", l.Mean, l.Deviation)
	}
	return outShape(in, out, b)
}

// nearMean is the largest number of deviations from 0 to the mean for which one pass over the
// data is exact enough.
const nearMean = 4

// Forward returns rows of the same shape as x.
func (l *Standardize) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	y := Tensor{Shape: x.Shape, Data: p.Backend.Temp(x.Data.Len()), Lengths: x.Lengths}
	scale := float32(1 / l.Deviation)
	if math.Abs(l.Mean) <= nearMean*l.Deviation {
		p.Backend.Rescale(y.Data, x.Data, scale, float32(-l.Mean/l.Deviation))
	} else { // scaled first, both terms would be large, and their difference inexact
		p.Backend.Rescale(y.Data, x.Data, 1, float32(-l.Mean))
		p.Backend.Scale(y.Data, scale)
	}
	return y, func(dy Tensor) Tensor {
		p.Backend.Scale(dy.Data, scale)
		return dy
	}
}

var _ Layer = (*Standardize)(nil)
