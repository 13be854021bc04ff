package optim

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/portable"
)

// RAdam is Thinc's RAdam.v1: Adam with a smaller learn rate while the estimate of the
// second moment is based on few gradients (Liu et al., "On the Variance of the Adaptive
// Learning Rate and Beyond", 2019). m, v, clipping, L2 and averages are as in [Adam].
// Update number n, counted from 1, is
//
//	t = n + 1
//	ρ∞ = 2/(1-Beta2) - 1
//	ρ = ρ∞ - 2·t·Beta2ᵗ/(1-Beta2ᵗ)
//	r = √( (1-Beta2ᵗ)·(ρ-4)·(ρ-2)·ρ∞ / ((ρ∞-4)·(ρ∞-2)·ρ) )
//	w = w - LearnRate·r/(1-Beta1ᵗ)·m/(√v + Eps)    if ρ >= 5
//	w = w - LearnRate/(1-Beta1ᵗ)·m                 otherwise
//
// Like Thinc it differs from the paper in two places: t is one more than the number of
// updates, and the second moment is used if ρ >= 5 instead of ρ > 4. Eps is outside
// the bias correction.
type RAdam struct {
	LearnRate, Beta1, Beta2, Eps Schedule
	L2, GradClip                 Schedule
	L2IsWeightDecay              bool
	UseAverages                  bool
}

var _ Optimizer = RAdam{}

// DefaultRAdam returns the defaults of Thinc's RAdam.v1, which equal those
// of [DefaultAdam].
func DefaultRAdam() RAdam { return RAdam(DefaultAdam()) }

// Slots implements Optimizer, with the same slots as Adam.
func (o RAdam) Slots() []string { return Adam(o).Slots() }

// minLength is the smallest ρ, the length of the approximated moving average, for which
// an update uses the second moment.
const minLength = 5

// Update implements Optimizer.
func (o RAdam) Update(b nn.Backend, p *nn.Params, s *State, part Part) {
	h, adaptive := o.hyper(s.Step)
	f := formOf(ruleAdam, h)
	if adaptive {
		s.update(f, h, b, p, part)
		return
	}
	// A step along the first moment takes two updates: an Adam that changes only the
	// moments, then an SGD that uses the first moment as its gradient.
	f.momentsOnly = true
	s.update(f, momentsOnly(h), b, p, part)
	s.update(Form{rule: ruleSGD, alongMoment: true}, alongMoment(h), b, p, part)
}

// Hyper implements Recordable. The first few updates consist of two, so
// they have no Form.
func (o RAdam) Hyper(step int) ([nn.HyperLen]float32, Form) {
	h, adaptive := o.hyper(step)
	if !adaptive {
		return h, Form{}
	}
	return h, formOf(ruleAdam, h)
}

// hyper returns the kernel's hyper-parameters for the update that follows step updates,
// and whether it uses the second moment.
func (o RAdam) hyper(step int) (h [nn.HyperLen]float32, adaptive bool) {
	rate, beta1, beta2 := o.LearnRate.at(step), o.Beta1.at(step), o.Beta2.at(step)
	h = terms{
		rate: rate, l2: o.L2.at(step), clip: o.GradClip.at(step),
		decays: o.L2IsWeightDecay, averages: o.UseAverages,
	}.hyper(step + 1)
	t := step + 2
	r, adaptive := rectify(beta2, t)
	h[nn.HyperRate] = float32(rate * r / (1 - portable.Power(beta1, t)))
	h[nn.HyperBeta1], h[nn.HyperMix1] = float32(beta1), float32(1-beta1)
	h[nn.HyperBeta2], h[nn.HyperMix2] = float32(beta2), float32(1-beta2)
	h[nn.HyperEps] = float32(o.Eps.at(step))
	return h, adaptive
}

// rectify returns the factor r of the learn rate. It returns 1 and false if too few
// gradients contribute to the second moment.
func rectify(beta2 float64, t int) (r float64, adaptive bool) {
	past := portable.Power(beta2, t)
	limit := 2/(1-beta2) - 1
	length := limit - 2*float64(t)*past/(1-past)
	if !(length >= minLength) {
		return 1, false
	}
	return math.Sqrt((1 - past) * (length - 4) / (limit - 4) * (length - 2) / length * limit / (limit - 2)), true
}

// momentsOnly returns h for an update that changes moments but not values.
// Eps is 1 to avoid 0/0.
func momentsOnly(h [nn.HyperLen]float32) [nn.HyperLen]float32 {
	h[nn.HyperRate], h[nn.HyperDecay], h[nn.HyperEps] = 0, 0, 1
	return h
}

// alongMoment returns h for an SGD step along the first moment, which already
// includes L2 and clipping.
func alongMoment(h [nn.HyperLen]float32) [nn.HyperLen]float32 {
	h[nn.HyperL2], h[nn.HyperClip] = 0, 0
	return h
}
