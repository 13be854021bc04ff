package optim

import "github.com/ringtrain/ringtrain/nn"

// terms are the hyper-parameters common to all update rules.
type terms struct {
	rate, l2, clip float64
	decays         bool // L2 is weight decay
	averages       bool
}

// maxAverageDecay is the largest weight of the past in a moving average.
const maxAverageDecay = .9999

// hyper converts the terms to the kernels' layout, for update number t, counted from 1.
func (x terms) hyper(t int) [nn.HyperLen]float32 {
	var h [nn.HyperLen]float32
	h[nn.HyperRate] = float32(x.rate)
	h[nn.HyperClip] = float32(x.clip)
	if x.decays {
		h[nn.HyperDecay] = float32(x.rate * x.l2)
	} else {
		h[nn.HyperL2] = float32(x.l2)
	}
	if x.averages {
		h[nn.HyperAverage] = float32(1 - min((1+float64(t))/(10+float64(t)), maxAverageDecay))
	}
	return h
}
