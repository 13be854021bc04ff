package optim

import "github.com/ringtrain/ringtrain/nn"

// terms are the hyper-parameters that all update rules share.
type terms struct {
	rate, l2, clip float64
	decays         bool // L2 is weight decay
	averages       bool
}

// maxAverageDecay is the largest share of the past in a moving average.
const maxAverageDecay = .9999

// hyper lays the terms out for the kernels at update number t, counted from 1.
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

// a view is the part of one parameter that one kernel call updates.
type view struct {
	w, g, m, v, average, norms nn.Buffer
}

// update writes h where the kernels find it and calls kernel for each parameter
// of the part, after its norm is known.
func update(b nn.Backend, s *State, part Part, h [nn.HyperLen]float32, kernel func(view)) {
	b.Copy(s.hyper, h[:])
	for _, q := range part.params {
		norms := s.norms.Slice(0, nn.Blocks(q.Values.Len()))
		if h[nn.HyperClip] > 0 {
			b.SquaredNorm(norms, q.Grads, q.Values, s.hyper)
		}
		lo, hi := part.span(q)
		kernel(view{
			w: q.Values.Slice(lo, hi), g: q.Grads.Slice(lo, hi),
			m: s.slot(SlotM, q, lo, hi), v: s.slot(SlotV, q, lo, hi),
			average: s.slot(SlotAverage, q, lo, hi), norms: norms,
		})
	}
}
