package optim

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// RAdam is Thinc's RAdam.v1: Adam whose rate is held back while its second moment
// rests on few gradients (Liu et al., "On the Variance of the Adaptive Learning
// Rate and Beyond", 2019). With m, v, clipping, L2 and averages as in [Adam], and
// after update number n, counted from 1,
//
//	t = n + 1
//	ρ∞ = 2/(1-Beta2) - 1
//	ρ = ρ∞ - 2·t·Beta2ᵗ/(1-Beta2ᵗ)
//	r = √( (1-Beta2ᵗ)·(ρ-4)·(ρ-2)·ρ∞ / ((ρ∞-4)·(ρ∞-2)·ρ) )
//	w = w - LearnRate·r/(1-Beta1ᵗ)·m/(√v + Eps)    if ρ >= 5
//	w = w - LearnRate/(1-Beta1ᵗ)·m                 otherwise
//
// It departs from the paper in two places, as Thinc does: t runs ahead of the
// updates by one, and the second moment counts from ρ >= 5 on, not above 4. Eps is
// outside the bias correction.
type RAdam struct {
	LearnRate, Beta1, Beta2, Eps Schedule
	L2, GradClip                 Schedule
	L2IsWeightDecay              bool
	UseAverages                  bool
}

var _ Optimizer = RAdam{}

// DefaultRAdam returns the defaults of Thinc's RAdam.v1, which are those of
// [DefaultAdam].
func DefaultRAdam() RAdam { return RAdam(DefaultAdam()) }

// Slots implements Optimizer. They are those of Adam.
func (o RAdam) Slots() []string { return Adam(o).Slots() }

// leastLength is how many gradients, as it were, the second moment must rest on.
const leastLength = 5

// Update implements Optimizer.
func (o RAdam) Update(b nn.Backend, p *nn.Params, s *State, part Part) {
	h, adaptive := o.hyper(s.Step)
	f := formOf(byAdam, h)
	if adaptive {
		update(f, h, b, p, s, part)
		return
	}
	// A step along the first moment is one of SGD, after the moments were moved
	// by an Adam that leaves the values alone.
	f.still = true
	update(f, still(h), b, p, s, part)
	update(Form{rule: bySGD, along: true}, along(h), b, p, s, part)
}

// Hyper implements Recordable. The first few updates, which are two, have no Form.
func (o RAdam) Hyper(step int) ([nn.HyperLen]float32, Form) {
	h, adaptive := o.hyper(step)
	if !adaptive {
		return h, Form{}
	}
	return h, formOf(byAdam, h)
}

// hyper returns the kernel's hyper-parameters after step updates, and whether
// the second moment counts.
func (o RAdam) hyper(step int) (h [nn.HyperLen]float32, adaptive bool) {
	rate, beta1, beta2 := o.LearnRate.at(step), o.Beta1.at(step), o.Beta2.at(step)
	h = terms{
		rate: rate, l2: o.L2.at(step), clip: o.GradClip.at(step),
		decays: o.L2IsWeightDecay, averages: o.UseAverages,
	}.hyper(step + 1)
	t := float64(step + 2)
	r, adaptive := rectify(beta2, t)
	h[nn.HyperRate] = float32(rate * r / (1 - math.Pow(beta1, t)))
	h[nn.HyperBeta1], h[nn.HyperMix1] = float32(beta1), float32(1-beta1)
	h[nn.HyperBeta2], h[nn.HyperMix2] = float32(beta2), float32(1-beta2)
	h[nn.HyperEps] = float32(o.Eps.at(step))
	return h, adaptive
}

// rectify returns what a rate is held back by, or 1 where the second moment rests
// on too little.
func rectify(beta2, t float64) (r float64, adaptive bool) {
	past := math.Pow(beta2, t)
	limit := 2/(1-beta2) - 1
	length := limit - 2*t*past/(1-past)
	if !(length >= leastLength) {
		return 1, false
	}
	return math.Sqrt((1 - past) * (length - 4) / (limit - 4) * (length - 2) / length * limit / (limit - 2)), true
}

// still is h for moments that move while the values stay. Eps is 1 because
// nothing may become 0/0.
func still(h [nn.HyperLen]float32) [nn.HyperLen]float32 {
	h[nn.HyperRate], h[nn.HyperDecay], h[nn.HyperEps] = 0, 0, 1
	return h
}

// along is h for a step of SGD along the first moment, in which L2 and clipping
// have had their part.
func along(h [nn.HyperLen]float32) [nn.HyperLen]float32 {
	h[nn.HyperL2], h[nn.HyperClip] = 0, 0
	return h
}
