package trainer

import "fmt"

// Rounds are the settings of a LocalSGD.
type Rounds struct {
	Steps    int     // inner steps in a round
	Rate     float64 // learning rate of outer steps
	Momentum float64 // Nesterov's, of outer steps; 0 for none
}

// Averaging returns the Rounds of local SGD (Stich, 2019): an outer step takes the mean
// of the ranks' values.
func Averaging(steps int) Rounds { return Rounds{Steps: steps, Rate: 1} }

// DiLoCo returns Rounds as in Douillard et al., 2023, with a rate of 1 and a momentum of .8
// instead of .7 and .9. The paper's values are for hundreds of rounds. In a few, momentum
// has not built up, and values move less far than if ranks summed gradients;
// docs/benchmarks.md has the accuracies. With a rate of 1, an outer step is the mean of the
// ranks' values plus momentum, as in FedAvgM (Hsu et al., 2019).
func DiLoCo(steps int) Rounds { return Rounds{Steps: steps, Rate: 1, Momentum: .8} }

// Check reports the first value that is out of range.
func (r Rounds) Check() error {
	switch {
	case r.Steps < 1:
		return fmt.Errorf("the inner steps of a round must be at least 1, not %d", r.Steps)
	case !(r.Rate > 0 && r.Rate <= mostOuterRate):
		return fmt.Errorf("the outer rate must be more than 0 and at most %d, not %v", mostOuterRate, r.Rate)
	case !(r.Momentum >= 0 && r.Momentum < 1):
		return fmt.Errorf("the outer momentum must be at least 0 and less than 1, not %v", r.Momentum)
	}
	return nil
}

// mostOuterRate is the greatest outer rate. Rates above 2 diverge.
const mostOuterRate = 10

// String describes what must be the same on all ranks.
func (r Rounds) String() string {
	return fmt.Sprintf("rounds of %d inner steps, outer rate %v, outer momentum %v", r.Steps, r.Rate, r.Momentum)
}

// ends reports whether a round ends with this step. The last step of a run ends
// one, too.
func (r Rounds) ends(s Step) bool { return s.Last || (s.Index+1)%r.Steps == 0 }
