package trainer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// A tracked is a Task that counts its calls of Learn.
type tracked struct {
	trainer.Task
	learned int
}

func (t *tracked) Learn(p *nn.Pass) (nn.Buffer, int, error) {
	t.learned++
	return t.Task.Learn(p)
}

func (t *tracked) Track(c nn.Counts) {
	c["learned"] += float64(t.learned)
	t.learned = 0
}

func (t *tracked) Metrics(total nn.Counts) []trainer.Metric {
	return append(t.Task.Metrics(total), trainer.Metric{Name: "learned", Value: total["learned"]})
}

// What a Task tracks is of all ranks, and of the steps since the last evaluation.
func TestTracked(t *testing.T) {
	j := job{ranks: 2, micro: 2, batch: 8, steps: 12, optimizer: optim.DefaultAdam(), change: func(_ int, c *trainer.Config) {
		c.Eval.Every, c.Task = 5, &tracked{Task: c.Task}
	}}
	for _, o := range j.run(t) {
		require.NoError(t, o.err)
		var learned []float64
		for _, e := range o.evals {
			learned = append(learned, e.Metric("learned"))
		}
		require.Equal(t, []float64{2 * 2 * 5, 2 * 2 * 5, 2 * 2 * 2}, learned)
	}
}

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
