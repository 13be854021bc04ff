package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// Which workers evaluate changes neither the weights nor the results.
func TestWhoEvaluates(t *testing.T) {
	f := tinySpec(t)
	train := func(who string, change func(*Spec)) *heard {
		f := f
		f.Overrides = []config.Override{{Path: "evaluation.workers", Raw: who}}
		change(&f)
		return run(t, f)
	}
	for _, strategy := range []string{allReduce, psSync, localSGD} {
		set := func(f *Spec) { f.Strategy, f.Saving.Dir = strategy, t.TempDir() }
		all, first, none := train("all", set), train("first", set), train("none", set)
		want := resultOf(t, all)
		for _, h := range []*heard{first, none} {
			require.Equal(t, want.WeightsSHA256, resultOf(t, h).WeightsSHA256, strategy)
		}
		shared, alone := eventsOf[*event.Eval](all), eventsOf[*event.Eval](first)
		require.NotEmpty(t, shared)
		require.Len(t, alone, len(shared))
		for i, e := range shared {
			require.Equal(t, e.Step, alone[i].Step)
			require.Equal(t, e.Metrics, alone[i].Metrics)
			require.InEpsilon(t, e.Loss, alone[i].Loss, 1e-9)
		}
		require.Empty(t, eventsOf[*event.Eval](none))
		steps, end := eventsOf[*event.Step](none), resultOf(t, none)
		require.Empty(t, end.Metrics)
		require.Zero(t, end.BestStep)
		require.Equal(t, steps[len(steps)-1].Loss, end.Loss, "that of the last step")
	}
	async := func(f *Spec) { f.Strategy = psAsync }
	require.NotEmpty(t, eventsOf[*event.Eval](train("all", async)))
	require.Empty(t, eventsOf[*event.Eval](train("none", async)))
}

// The mistake has a position.
func TestWhoEvaluatesMistake(t *testing.T) {
	_, err := smallSpec(t, "[evaluation]\nworkers = \"some\"\n").Settle()
	require.ErrorContains(t, err, `:2: evaluation.workers must be all, first or none, not "some"`)
	f := smallSpec(t, "[evaluation]\nworkers = \"none\"\n")
	f.Until = "loss=1"
	_, err = f.Settle()
	require.ErrorContains(t, err, ":2: --until needs evaluations, but evaluation.workers is none: leave one of them out")
}
