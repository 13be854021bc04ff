package trainer

// Evaluations says after which steps Train evaluates, and when that ends training.
type Evaluations struct {
	Every int    // steps between evaluations; 0: there is only the one at the end
	First bool   // the first one is after the first step, not after Every steps
	Until Target // an evaluation that reaches it ends training
}

// first returns after how many steps the first regular evaluation is, or 0 if there are
// none.
func (e Evaluations) first() int {
	if e.First && e.Every > 0 {
		return 1
	}
	return e.Every
}

// within returns the number of regular evaluations in the first steps. Every is above 0.
func (e Evaluations) within(steps int) int {
	return (steps + e.Every - e.first()) / e.Every
}
