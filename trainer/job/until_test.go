package job

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// endless is a sharedSpec with more steps than a test would wait for.
func endless(t *testing.T) sharedSpec {
	s, _ := newShared(t)
	s.Steps, s.Until = 1_000_000, "accuracy=.5"
	return s
}

// A job ends when it reaches its target. Saved weights and result are those of that moment or,
// with servers that do not wait, of one soon after.
func TestUntil(t *testing.T) {
	for _, strategy := range []string{"", psSync, psAsync, psPeers} {
		for _, transport := range []string{crew.TransportInProcess, cluster.TransportAuto} {
			t.Run(strategy+" "+transport, func(t *testing.T) {
				s := endless(t)
				s.Transport, s.Dir = transport, filepath.Join(t.TempDir(), "run")
				s.Strategy = strategy
				if strategy == psSync || strategy == psAsync {
					s.Servers = "2"
				}
				h := new(heard)
				require.NoError(t, Run(t.Context(), s.spec(), s.share(t, h)), h.said())
				all := eventsOf[*event.Target](h)
				require.Len(t, all, 1)
				got, result := all[0], resultOf(t, h)
				require.True(t, got.Reached)
				require.Equal(t, []any{"accuracy", .5}, []any{got.Metric, got.Target})
				require.GreaterOrEqual(t, got.Value, .5)
				require.Positive(t, got.Seconds)
				for _, e := range eventsOf[*event.Eval](h) {
					require.Equal(t, e.Step >= got.Step, e.Metrics.Value("accuracy") >= .5 || e.Step > got.Step, "step %d", e.Step)
				}
				samples := 0
				for _, e := range eventsOf[*event.Step](h) {
					if e.Step <= got.Step {
						samples += e.Samples
					}
				}
				require.Equal(t, samples, got.Samples)
				if strategy == psAsync || strategy == psPeers {
					require.Greater(t, result.Steps, got.Step, "another update carries the request to stop")
				} else {
					require.Equal(t, got.Step, result.Steps)
					require.Equal(t, got.Value, result.Metrics.Value("accuracy"))
				}
				step, _ := Newest(s.Dir, "")
				require.Equal(t, result.Steps, step)
				require.Zero(t, h.count("stopped"))
				require.Zero(t, h.count("peer_lost"), h.said())
			})
		}
	}
}

// A job that has reached its target has nothing left to do.
func TestUntilAfterResume(t *testing.T) {
	s := endless(t)
	s.Transport, s.Dir = crew.TransportInProcess, filepath.Join(t.TempDir(), "run")
	first := new(heard)
	require.NoError(t, Run(t.Context(), s.spec(), s.share(t, first)), first.said())
	s.Resume = true
	again := new(heard)
	require.NoError(t, Run(t.Context(), s.spec(), s.share(t, again)), again.said())
	require.Zero(t, again.count("step"))
	require.Equal(t, resultOf(t, first).WeightsSHA256, resultOf(t, again).WeightsSHA256)
	require.Equal(t, eventsOf[*event.Target](first)[0].Step, eventsOf[*event.Target](again)[0].Step)
}

// A target that is not reached is no failure.
func TestUntilNotReached(t *testing.T) {
	f := tinySpec(t)
	f.Until = "loss=0"
	h := run(t, f)
	require.Equal(t, []*event.Target{{Metric: "loss"}}, eventsOf[*event.Target](h))
	require.Equal(t, 6, resultOf(t, h).Steps)
}

// Mistakes in a target are the user's to correct.
func TestUntilRefused(t *testing.T) {
	for want, change := range map[string]func(f *Spec){
		"--until: a target must be METRIC=VALUE":                                                     func(f *Spec) { f.Until = "accuracy" },
		"must be METRIC=VALUE, such as accuracy=.95, not \"accuracy>=.9\"":                           func(f *Spec) { f.Until = "accuracy>=.9" },
		`--until f1=.5: this task has no metric "f1": choose from accuracy, loss`:                    func(f *Spec) { f.Until = "f1=.5" },
		"--until accuracy=95 cannot be reached: accuracy is at most 1; write accuracy=0.95 for 95 %": func(f *Spec) { f.Until = "accuracy=95" },
		"--until accuracy=950 cannot be reached: accuracy is at most 1":                              func(f *Spec) { f.Until = "accuracy=950" },
		"--until needs evaluations between steps": func(f *Spec) {
			f.Until, f.Overrides = "accuracy=.5", []config.Override{{Path: "evaluation.frequency", Raw: "0"}}
		},
	} {
		f := tinySpec(t)
		change(&f)
		h, err := runError(t, t.Context(), f, Options{})
		require.ErrorContains(t, err, want)
		require.Empty(t, eventsOf[*event.Step](h))
	}
	s := endless(t)
	s.Until = "f1=.5"
	_, err := runError(t, t.Context(), s.spec(), s.share(t, new(heard)))
	var usage *crew.UsageError
	require.ErrorAs(t, err, &usage, "no worker has started")
}

// All ranks learn from rank 0 that the target is reached, so every machine reports it.
func TestReachedIsShared(t *testing.T) {
	want := trainer.Reached{Step: 40, Metric: trainer.Metric{Value: .51}, Samples: 320, Sent: 1 << 40, Elapsed: time.Second}
	collectivetest.Ranks(t, 3, func(ctx context.Context, g *collective.Group) {
		r, own := &rank{training: &Training{Spec: Spec{Until: "accuracy=.5", Strategy: psAsync}}, group: g}, trainer.Reached{}
		if g.Rank() == 0 {
			own = want
		}
		got, err := shareReached(ctx, r, own)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}
