package job

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// inTriples returns a tiny job in rounds of three steps.
func inTriples(t *testing.T, strategy string) Spec {
	f := tinySpec(t)
	f.Strategy, f.Gradients.Rounds.Steps = strategy, 3
	return f
}

// onlyCheckpoint returns a new directory with a copy of one checkpoint.
func onlyCheckpoint(t *testing.T, dir string, step int) string {
	raw, err := os.ReadFile(stepFile(dir, step))
	require.NoError(t, err)
	one := t.TempDir()
	require.NoError(t, os.WriteFile(stepFile(one, step), raw, 0o600))
	return one
}

// A job in rounds resumes exactly from every checkpoint. With other numbers of workers or
// another strategy it continues, and says what differs.
func TestRoundsResume(t *testing.T) {
	for strategy, compress := range map[string]string{localSGD: "none", diLoCo: "int8"} {
		f := inTriples(t, strategy)
		f.Workers, f.Steps, f.Gradients.Compress = 2, 8, compress
		f.Saving = Saving{Dir: t.TempDir(), Every: 1}
		whole := resultOf(t, run(t, f)).WeightsSHA256
		for step := 1; step < 8; step++ {
			again := f
			again.Saving = Saving{Resume: onlyCheckpoint(t, f.Saving.Dir, step), Dir: t.TempDir()}
			h := run(t, again)
			require.Equal(t, whole, resultOf(t, h).WeightsSHA256, "%s from step %d", strategy, step)
			require.Empty(t, h.said())
		}
		for want, change := range map[string]func(f *Spec){
			"the number of workers (3, was 2)":                                                  func(f *Spec) { f.Workers = 3 },
			"--strategy (allreduce, was " + strategy + ", rounds of 3 inner steps, outer rate ": func(f *Spec) { f.Strategy, f.Gradients.Compress = "allreduce", compress },
			"--strategy (" + strategy + ", rounds of 2 inner steps, outer rate ":                func(f *Spec) { f.Gradients.Rounds.Steps = 2 },
		} {
			for _, step := range []int{3, 5} {
				again := f
				again.Saving = Saving{Resume: onlyCheckpoint(t, f.Saving.Dir, step), Dir: t.TempDir()}
				change(&again)
				h := run(t, again)
				require.Equal(t, 8, resultOf(t, h).Steps)
				require.Contains(t, h.said(), want)
			}
		}
	}
}

// Any machine may be the one with the checkpoint, also within a round.
func TestRoundsResumeFromAnyMachine(t *testing.T) {
	f := inTriples(t, diLoCo)
	out := t.TempDir()
	whole := resultOf(t, &trainRanks(t, f, func(_ int, f *Spec) { f.Saving = Saving{Dir: out, Every: 4} })[0].heard).WeightsSHA256
	have := onlyCheckpoint(t, out, 4)
	for source := range 3 {
		missing := filepath.Join(t.TempDir(), "none")
		for rank, o := range trainRanks(t, f, func(rank int, f *Spec) {
			f.Saving = Saving{Resume: missing, Dir: t.TempDir()}
			if rank/2 == source {
				f.Saving.Resume = have
			}
		}) {
			require.NoError(t, o.err)
			if rank%2 == 0 {
				require.Equal(t, whole, resultOf(t, &o.heard).WeightsSHA256, "checkpoint on machine %d", source)
			}
		}
	}
}

// A checkpoint within a round can be evaluated, and has what Estimate says.
func TestRoundsEstimate(t *testing.T) {
	for _, strategy := range []string{localSGD, diLoCo} {
		f := inTriples(t, strategy)
		f.Workers, f.Saving = 2, Saving{Dir: t.TempDir(), Every: 1}
		e, end := estimateOf(t, f), resultOf(t, run(t, f))
		require.InDelta(t, 6*e.Wire, end.WireBytes, 6, "rounded down")
		require.Contains(t, e.Plan, "; once in 3 steps")
		require.Contains(t, end.Plan, "; once in 3 steps")
		at4, err := checkpoint.Load(stepFile(f.Saving.Dir, 4))
		require.NoError(t, err)
		bytes := 0
		for _, one := range at4.Tensors {
			bytes += 4 * one.Tensor.Shape().TotalSize()
		}
		require.Equal(t, e.Checkpoint, bytes)
		plain := f
		plain.Strategy = "allreduce"
		require.Equal(t, e.Wire, estimateOf(t, plain).Wire/3)
		require.Equal(t, e.Slots, estimateOf(t, plain).Slots+e.Values*map[string]int{localSGD: 2, diLoCo: 3}[strategy])
		n, err := describe(t, f).deviceNeed()
		require.NoError(t, err)
		m, err := describe(t, plain).deviceNeed()
		require.NoError(t, err)
		require.Equal(t, m.Parameters+e.Slots-estimateOf(t, plain).Slots, n.Parameters)
	}
}

// The events of inner steps are about one worker, those of outer steps about the round.
func TestRoundsEvents(t *testing.T) {
	f := inTriples(t, diLoCo)
	f.Workers = 2
	h := run(t, f)
	var samples []int
	for _, e := range eventsOf[*event.Step](h) {
		samples = append(samples, e.Samples)
		require.Equal(t, e.Step%3 == 0, e.WireBytes > 0)
	}
	require.Equal(t, []int{4, 4, 24, 4, 4, 24}, samples)
	for _, e := range eventsOf[*event.Eval](h) {
		require.Zero(t, e.Step%3)
	}
}

// What makes no sense in rounds is refused, with the name of the flag.
func TestRoundsRefuse(t *testing.T) {
	for want, change := range map[string]func(f *Spec){
		"--strategy diloco: the inner steps of a round must be at least 1, not 0": func(f *Spec) { f.Gradients.Rounds.Steps = 0 },
		"--strategy diloco: the outer rate must be more than 0":                   func(f *Spec) { f.Gradients.Rounds.Rate = -1 },
		"--strategy diloco: the outer momentum must be at least 0":                func(f *Spec) { f.Gradients.Rounds.Momentum = 1 },
		"--reduce total cannot be combined with --strategy diloco":                func(f *Spec) { f.Gradients.Reduce = "total" },
		"--reduce sum cannot be combined with --strategy diloco":                  func(f *Spec) { f.Gradients.Reduce = "sum" },
		"--faithful-accumulate cannot be combined with --strategy diloco":         func(f *Spec) { f.Gradients.Faithful = true },
	} {
		f := NewSpec(catalog.New(), "x.cfg")
		f.Strategy = diLoCo
		require.NoError(t, f.Check())
		change(&f)
		require.ErrorContains(t, f.Check(), want)
	}
	f := NewSpec(catalog.New(), "x.cfg")
	f.Strategy, f.Gradients.Rounds = localSGD, trainer.Rounds{Steps: 3}
	require.NoError(t, f.Check(), "it has a rate of its own")
}

// In four rounds of eight workers, DiLoCo stays within a point of allreduce, also compressed.
// With the paper's outer rate and momentum it does not.
func TestDiLoCoAccuracy(t *testing.T) {
	collectivetest.Slow(t)
	accuracy := func(strategy, compress string) float64 {
		f := NewSpec(catalog.New(), filepath.FromSlash("../../examples/mnist.cfg"))
		f.Workers, f.Steps, f.Strategy, f.Gradients.Compress = 8, 200, strategy, compress
		f.Place.Transport, f.Device.Device, f.Order.Table = crew.TransportInProcess, "cpu", tuned.Off
		f.Overrides = []config.Override{{Path: "evaluation.frequency", Raw: "0"}}
		return resultOf(t, run(t, f)).Metrics.Value("accuracy")
	}
	want := accuracy("allreduce", "none")
	require.Greater(t, want, .98)
	for _, compress := range []string{"none", "int8"} {
		require.Greater(t, accuracy(diLoCo, compress), want-.01, compress)
	}
}
