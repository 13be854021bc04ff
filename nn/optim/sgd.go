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

// DefaultSGD returns the defaults of Thinc's SGD.v1 for the given learn rate: no L2,
// clipping at 1, and averages.
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
func (o SGD) Update(b nn.Backend, p *nn.Params, s *State, part Part) {
	h, f := o.Hyper(s.Step)
	s.update(f, h, b, p, part)
}

// Hyper implements Recordable.
func (o SGD) Hyper(step int) ([nn.HyperLen]float32, Form) {
	h := terms{
		rate: o.LearnRate.at(step), l2: o.L2.at(step), clip: o.GradClip.at(step),
		decays: o.L2IsWeightDecay, averages: o.UseAverages,
	}.hyper(step + 1)
	return h, formOf(ruleSGD, h)
}
