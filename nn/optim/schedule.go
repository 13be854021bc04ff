package optim

// A Schedule is a hyper-parameter that may change with training: its value for
// the update after step updates have been made, so 0 for the first. A nil
// Schedule is 0. It is a pure function: every worker gets the same value.
type Schedule func(step int) float64

// Constant returns a Schedule that is always v.
func Constant(v float64) Schedule { return func(int) float64 { return v } }

// at returns the value at a step.
func (s Schedule) at(step int) float64 {
	if s == nil {
		return 0
	}
	return s(step)
}
