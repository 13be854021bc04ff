package optim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A schedule may become impossible after the first step.
func TestCheck(t *testing.T) {
	at := func(step int, v float64) Schedule {
		return func(s int) float64 {
			if s >= step {
				return v
			}
			return .5
		}
	}
	for want, change := range map[string]func(o *Adam){
		"":                                       func(o *Adam) { o.LearnRate = at(100_000, -1) },
		"learn_rate is -1 in step 3; it must be": func(o *Adam) { o.LearnRate = at(2, -1) },
		"beta1 is 1 in step 13; it must be at lea": func(o *Adam) { o.Beta1 = at(12, 1) },
		"beta2 is 1.5 in step 2; it must be at le": func(o *Adam) { o.Beta2 = at(1, 1.5) },
		"eps is NaN in step 1; it must be at leas": func(o *Adam) { o.Eps = Constant(math.NaN()) },
		"L2 is +Inf in step 20009; it must be at ": func(o *Adam) { o.L2 = at(20_001, math.Inf(1)) },
		"grad_clip is -0.5 in step 1; it must be ": func(o *Adam) { o.GradClip = Constant(-.5) },
	} {
		o := DefaultAdam()
		change(&o)
		for _, c := range []Checker{o, RAdam(o)} {
			err := c.Check(100_000)
			if want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
			}
		}
	}
	for _, steps := range []int{0, checkedSteps, checkedSteps + 1, checkedSteps + 2, 2*checkedSteps - 1, 2 * checkedSteps} {
		require.NoError(t, SGD{LearnRate: at(steps, -1)}.Check(steps))
	}
	require.ErrorContains(t, SGD{LearnRate: at(2*checkedSteps-2, -1)}.Check(2*checkedSteps-1), "learn_rate is -1 in step 19999")
	require.ErrorContains(t, SGD{LearnRate: at(2, -1)}.Check(3), "learn_rate is -1 in step 3")
	require.NoError(t, SGD{LearnRate: at(2, -1)}.Check(2))
}
