package optim

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/portable"
)

// Adam is Thinc's Adam.v1. Update number t, counted from 1, of a parameter w
// with mean gradient g is
//
//	g = g + L2·w                          unless L2IsWeightDecay
//	g = g·GradClip/‖g‖₂                   if ‖g‖₂ >= GradClip > 0, norm per parameter
//	m = Beta1·m + (1-Beta1)·g
//	v = Beta2·v + (1-Beta2)·g²
//	w = w - LearnRate·√(1-Beta2ᵗ)/(1-Beta1ᵗ)·m/(√v + Eps)
//	w = w - LearnRate·L2·w                if L2IsWeightDecay
//	average = d·average + (1-d)·w         if UseAverages, d = min((1+t)/(10+t), .9999)
//
// (Kingma and Ba, ICLR 2015, with Eps outside the bias correction). If Beta2 is 0 there
// are no moments and w = w - LearnRate·g, as in [SGD]. The bias correction for update t
// uses the betas scheduled for that update.
type Adam struct {
	LearnRate, Beta1, Beta2, Eps Schedule
	L2, GradClip                 Schedule
	L2IsWeightDecay              bool
	UseAverages                  bool
}

var _ Optimizer = Adam{}

// DefaultAdam returns the defaults of Thinc's Adam.v1: learn rate .001, betas .9 and
// .999, eps 1e-8, no L2, clipping at 1, and averages.
func DefaultAdam() Adam {
	return Adam{
		LearnRate:       Constant(.001),
		Beta1:           Constant(.9),
		Beta2:           Constant(.999),
		Eps:             Constant(1e-8),
		L2:              Constant(0),
		GradClip:        Constant(1),
		L2IsWeightDecay: true,
		UseAverages:     true,
	}
}

// Slots implements Optimizer.
func (a Adam) Slots() []string {
	if a.UseAverages {
		return []string{SlotM, SlotV, SlotAverage}
	}
	return []string{SlotM, SlotV}
}

// Update implements Optimizer.
func (a Adam) Update(b nn.Backend, p *nn.Params, s *State, part Part) {
	h, f := a.Hyper(s.Step)
	s.update(f, h, b, p, part)
}

// Hyper implements Recordable.
func (a Adam) Hyper(step int) ([nn.HyperLen]float32, Form) {
	h := a.hyper(step)
	if h[nn.HyperBeta2] == 0 {
		return h, formOf(ruleSGD, h)
	}
	return h, formOf(ruleAdam, h)
}

// hyper returns the kernel's hyper-parameters for the update that follows step updates.
func (a Adam) hyper(step int) [nn.HyperLen]float32 {
	t := step + 1
	beta1, beta2 := a.Beta1.at(step), a.Beta2.at(step)
	h := terms{
		rate: a.LearnRate.at(step), l2: a.L2.at(step), clip: a.GradClip.at(step),
		decays: a.L2IsWeightDecay, averages: a.UseAverages,
	}.hyper(t)
	if beta2 == 0 {
		return h
	}
	fix := math.Sqrt(1-portable.Power(beta2, t)) / (1 - portable.Power(beta1, t))
	h[nn.HyperRate] = float32(a.LearnRate.at(step) * fix)
	// Thinc rounds the betas first. For .999 that makes steps larger by 6e-6, far more than
	// float32 rounds.
	h[nn.HyperBeta1], h[nn.HyperMix1] = float32(beta1), 1-float32(beta1)
	h[nn.HyperBeta2], h[nn.HyperMix2] = float32(beta2), 1-float32(beta2)
	h[nn.HyperEps] = float32(a.Eps.at(step))
	return h
}
