package trainer_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// until returns the job with an evaluation every 5 steps and a target.
func (j job) until(target trainer.Target) job {
	change := j.change
	j.change = func(rank int, c *trainer.Config) {
		if change != nil {
			change(rank, c)
		}
		c.Eval = trainer.Evaluations{Every: 5, Until: target}
	}
	return j
}

var targetJob = job{ranks: 3, batch: 8, steps: 40, optimizer: optim.DefaultAdam()}

// Training ends with the first evaluation that reaches the target, from above or from below,
// with the values of a run of as many steps.
func TestTarget(t *testing.T) {
	for name, usual := range map[string]job{
		"steps":    targetJob,
		"recorded": targetJob.recorded(4, false),
		"rounds":   targetJob.inRounds(trainer.DiLoCo(4), noCompression),
	} {
		all := usual.until(trainer.Target{}).run(t)
		require.NoError(t, all[0].err, name)
		require.Zero(t, all[0].result.Reached, name)
		at := all[0].evals[2] // the loss falls, so it is the first to reach its own
		for _, target := range []trainer.Target{{Metric: "loss", Value: at.Loss}, {Metric: "accuracy", Value: at.Metric("accuracy")}} {
			first := slices.IndexFunc(all[0].evals, func(e trainer.EvalEvent) bool {
				return target.Metric == "loss" && e.Loss <= target.Value || target.Metric == "accuracy" && e.Metric("accuracy") >= target.Value
			})
			kept := new(memorySaver)
			for rank, o := range usual.until(target).saves(kept).run(t) {
				require.NoError(t, o.err, name)
				require.Len(t, o.evals, first+1, "%s: rank %d, %v", name, rank, target)
				want, got := all[rank].evals[first], o.result.Reached
				require.Equal(t, []int{want.Step, want.Step}, []int{got.Step, o.result.Steps})
				require.Equal(t, target.Metric, got.Metric.Name)
				require.Equal(t, []int{o.result.Samples, o.result.Sent}, []int{got.Samples, got.Sent})
				require.Equal(t, want.Step*3*8, got.Samples)
				require.Equal(t, want.Counts, o.result.Final.Counts)
				require.LessOrEqual(t, got.Elapsed, o.result.Elapsed)
			}
			short := usual
			short.steps = all[0].evals[first].Step
			require.Equal(t, short.run(t)[0].values, kept.values[short.steps], "%s: %v", name, target)
			require.True(t, kept.saved[short.steps].Last, name)
		}
	}
}

// A target that no evaluation reaches changes nothing.
func TestTargetNotReached(t *testing.T) {
	want := targetJob.run(t)
	for rank, o := range targetJob.until(trainer.Target{Metric: "accuracy", Value: 1.5}).run(t) {
		require.NoError(t, o.err)
		require.False(t, o.result.Reached.Found())
		require.Equal(t, 40, o.result.Steps)
		require.Equal(t, want[rank].values, o.values)
	}
}

// A run that resumes ends where an uninterrupted one does. One that was saved when it
// had reached the target takes no step.
func TestTargetAfterResume(t *testing.T) {
	target := trainer.Target{Metric: "loss", Value: targetJob.until(trainer.Target{}).run(t)[0].evals[3].Loss}
	usual, kept := targetJob.until(target), new(memorySaver)
	whole := usual.saves(kept).run(t)
	require.NoError(t, whole[0].err)
	require.Equal(t, []int{7, 14, 20}, kept.steps())
	for step, evaluations := range map[int]int{7: 3, 14: 2, 20: 1} {
		for rank, o := range usual.from(kept, step).run(t) {
			require.NoError(t, o.err)
			require.Equal(t, 20, o.result.Reached.Step, "from %d", step)
			require.Equal(t, whole[rank].values, o.values)
			require.Len(t, o.steps, 20-step)
			require.Len(t, o.evals, evaluations)
			require.Equal(t, (20-step)*3*8, o.result.Reached.Samples)
		}
	}
}

// A metric that the task does not have is refused by every rank, with those that it has.
func TestTargetUnknown(t *testing.T) {
	for _, o := range targetJob.until(trainer.Target{Metric: "acuracy", Value: .5}).run(t) {
		require.EqualError(t, o.err, `trainer: the target is acuracy=0.5, and this task has no metric "acuracy": choose from accuracy, loss`)
		require.ErrorAs(t, o.err, new(*trainer.TargetError))
		require.True(t, trainer.Unanimous(o.err))
	}
}

// Ranks with different targets refuse to train.
func TestTargetDiffers(t *testing.T) {
	j := targetJob
	j.change = func(rank int, c *trainer.Config) {
		c.Eval.Until = trainer.Target{Metric: "accuracy", Value: float64(rank)}
	}
	for _, o := range j.run(t) {
		require.ErrorContains(t, o.err, "the target")
	}
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]trainer.Target{
		"accuracy=.95":   {Metric: "accuracy", Value: .95},
		"loss=1e-3":      {Metric: "loss", Value: 1e-3},
		"ents_f:PER=0.9": {Metric: "ents_f:PER", Value: .9},
		"a=b=-2":         {Metric: "a=b", Value: -2},
	} {
		got, err := trainer.ParseTarget(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		again, err := trainer.ParseTarget(got.String())
		require.NoError(t, err)
		require.Equal(t, want, again)
	}
	require.Equal(t, "none", trainer.Target{}.String())
	for _, text := range []string{"", "accuracy", "accuracy=", "=.95", "accuracy=high", "accuracy=NaN", "accuracy=+Inf", "accuracy=95%", "accuracy>=.9", "loss<=.1", "loss!=.1", "loss==.1"} {
		_, err := trainer.ParseTarget(text)
		require.ErrorContains(t, err, "a target must be METRIC=VALUE, such as accuracy=.95", text)
	}
}
