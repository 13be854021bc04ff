package trainer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// Evaluations are where the config says, and at the end, whether steps are recorded or not.
func TestWhenEvaluated(t *testing.T) {
	for _, c := range []struct {
		every int
		first bool
		want  []int // steps
	}{
		{5, false, []int{5, 10, 12}},
		{5, true, []int{1, 6, 11, 12}},
		{1, true, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{20, true, []int{1, 12}},
		{0, true, []int{12}},
	} {
		j := job{ranks: 2, batch: 8, steps: 12, optimizer: optim.DefaultAdam(), change: func(_ int, c2 *trainer.Config) {
			c2.Eval = trainer.Evaluations{Every: c.every, First: c.first}
		}}
		for _, j := range []job{j, j.recorded(4, false)} {
			for _, o := range j.run(t) {
				require.NoError(t, o.err)
				var steps []int
				for _, e := range o.evals {
					steps = append(steps, e.Step)
				}
				require.Equal(t, c.want, steps)
			}
		}
	}
}
