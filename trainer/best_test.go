package trainer_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// keepsBest returns the job with an evaluation every 5 steps, the first of these measures,
// and copies of the best values on rank 0.
func (j job) keepsBest(measures ...trainer.Measure) job {
	change := j.change
	j.change = func(rank int, c *trainer.Config) {
		if change != nil {
			change(rank, c)
		}
		c.Eval.Every, c.KeepBest = 5, rank == 0
		c.Task.(*trainer.ModelTask[nn.Batch]).Measures = measures
	}
	return j
}

// bestOf returns the place of the best evaluation, by a value that should be low, and marks
// those that were better than all before them.
func bestOf(values []float64) (best int, marks []bool) {
	marks = make([]bool, len(values))
	for i, v := range values {
		if i == 0 || v < values[best] {
			best, marks[i] = i, true
		}
	}
	return best, marks
}

// lossUp is the loss as a measure to be maximised, so that the best evaluation is an early
// one.
var lossUp = trainer.Measure{Name: "loss_up", Of: func(c nn.Counts) float64 { return c[nn.CountLoss] }}

// All ranks agree on the best evaluation by the first metric, or by the loss, and rank 0
// has its values: those of a run that ended there.
func TestBest(t *testing.T) {
	for _, c := range []struct {
		name     string
		measures []trainer.Measure
		sign     float64 // of the value that should be low
		of       func(e trainer.EvalEvent) float64
	}{
		{"loss", nil, 1, func(e trainer.EvalEvent) float64 { return e.Loss }},
		{"accuracy", []trainer.Measure{trainer.Accuracy, lossUp}, -1, func(e trainer.EvalEvent) float64 { return e.Metric("accuracy") }},
		{"loss_up", []trainer.Measure{lossUp, trainer.Accuracy}, -1, func(e trainer.EvalEvent) float64 { return e.Metric("loss_up") }},
	} {
		usual := job{ranks: 3, batch: 8, steps: 23, optimizer: optim.DefaultAdam()}
		all := usual.keepsBest(c.measures...).run(t)
		var values []float64
		for _, e := range all[0].evals {
			values = append(values, c.sign*c.of(e))
		}
		require.Len(t, values, 5, "after 5, 10, 15, 20 and 23 steps")
		best, marks := bestOf(values)
		for rank, o := range all {
			require.NoError(t, o.err)
			for i, e := range o.evals {
				require.Equal(t, marks[i], e.Best, "%s: rank %d, evaluation %d", c.name, rank, i)
			}
			got := o.result.Best
			require.Equal(t, o.evals[best].Step, got.Step, c.name)
			require.Equal(t, c.name, got.Metric.Name)
			require.InDelta(t, values[best], c.sign*got.Metric.Value, 0)
			require.Equal(t, rank == 0, got.Values != nil)
		}
		short := usual
		short.steps = all[0].result.Best.Step
		require.True(t, slices.Equal(short.run(t)[0].values, all[0].result.Best.Values), c.name)
		one := usual
		one.ranks, one.micro = 1, 3
		alone := one.keepsBest(c.measures...).run(t)[0].result.Best
		require.Equal(t, all[0].result.Best.Step, alone.Step, "one rank finds the same")
		require.True(t, slices.Equal(all[0].result.Best.Values, alone.Values))
	}
}

// A resumed run knows the best evaluation before.
func TestBestAfterResume(t *testing.T) {
	for _, measures := range [][]trainer.Measure{{trainer.Accuracy}, {lossUp}} {
		kept := new(memorySaver)
		bests := map[int]trainer.Best{}
		usual := job{ranks: 2, batch: 8, steps: 30, optimizer: optim.DefaultAdam()}.keepsBest(measures...)
		whole := usual.saves(kept).run(t)
		require.NoError(t, whole[0].err)
		for step, s := range kept.saved {
			bests[step] = s.Best
		}
		for _, step := range []int{7, 14, 28} {
			again := usual.from(kept, step)
			change := again.change
			again.change = func(rank int, c *trainer.Config) {
				change(rank, c)
				c.Best = bests[step]
				c.Best.Values = slices.Clone(c.Best.Values)
			}
			for rank, o := range again.run(t) {
				require.NoError(t, o.err)
				require.Equal(t, whole[rank].result.Best.Step, o.result.Best.Step, "from %d", step)
				require.Equal(t, whole[rank].result.Best.Metric, o.result.Best.Metric)
			}
		}
	}
}

// nearly is a measure that rises by a millionth of itself and less from one evaluation to
// the next, and once by more.
func nearly() trainer.Measure {
	values, at := []float64{1, 1 + 5e-7, 1, 1 + 3e-6, 1 + 3.5e-6}, -1
	return trainer.Measure{Name: "nearly", Of: func(nn.Counts) float64 { at++; return values[at] }}
}

// Rounding decides nothing: another number of ranks would round differently.
func TestBestIgnoresRounding(t *testing.T) {
	o := job{ranks: 1, batch: 8, steps: 23, optimizer: optim.DefaultAdam()}.keepsBest(nearly()).run(t)[0]
	require.NoError(t, o.err)
	require.Equal(t, 20, o.result.Best.Step)
}

// Ranks that differ in what was the best refuse to train.
func TestBestDiffers(t *testing.T) {
	j := job{ranks: 2, batch: 8, steps: 5, optimizer: optim.DefaultAdam(), change: func(rank int, c *trainer.Config) {
		c.Best = trainer.Best{Step: rank, Metric: trainer.Metric{Name: "accuracy", Value: .5}}
	}}
	for _, o := range j.run(t) {
		require.ErrorContains(t, o.err, "the best evaluation so far")
	}
}
