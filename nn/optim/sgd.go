package optim

import "github.com/ringtrain/ringtrain/nn"

// SGD is Thinc's SGD.v1: w = w - LearnRate·g, with L2, clipping, weight decay
// and averages as in [Adam].
type SGD struct {
	LearnRate, L2, GradClip Schedule
	L2IsWeightDecay         bool
	UseAverages             bool
}

var _ Optimizer = SGD{}

// DefaultSGD returns Thinc's defaults for SGD.v1 with the given learn rate: no
// L2, clipping at 1, averages.
func DefaultSGD(learnRate float64) SGD {
	return SGD{
		LearnRate:       Constant(learnRate),
		L2:              Constant(0),
		GradClip:        Constant(1),
		L2IsWeightDecay: true,
		UseAverages:     true,
	}
}

// Slots implements Optimizer.
func (o SGD) Slots() []string {
	if o.UseAverages {
		return []string{SlotAverage}
	}
	return nil
}

// Update implements Optimizer.
func (o SGD) Update(b nn.Backend, _ *nn.Params, s *State, part Part) {
	h := terms{
		rate: o.LearnRate.at(s.Step), l2: o.L2.at(s.Step), clip: o.GradClip.at(s.Step),
		decays: o.L2IsWeightDecay, averages: o.UseAverages,
	}.hyper(s.Step + 1)
	update(b, s, part, h, func(x view) { b.SGD(x.w, x.g, x.average, x.norms, s.hyper) })
}
