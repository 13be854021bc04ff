package job

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// waitless returns tinySpec with asynchronous servers.
func waitless(t *testing.T, servers string) Spec {
	f := served(t, servers)
	f.Strategy = psAsync
	return f
}

// With any servers, as goroutines or processes, the workers share the updates. Rank 0
// evaluates, and the result says how stale the gradients were.
func TestPSAsync(t *testing.T) {
	for servers, plan := range map[string]string{
		"1":       "2 workers and 1 parameter server, ps-async",
		"3":       "2 workers and 3 parameter servers, ps-async",
		Colocated: "2 workers, each also a parameter server, ps-async",
	} {
		for _, transport := range []string{crew.TransportInProcess, cluster.TransportAuto, cluster.TransportTCP} {
			t.Run(servers+" "+transport, func(t *testing.T) {
				s, _ := newShared(t)
				s.Strategy, s.Servers, s.Transport = psAsync, servers, transport
				h := new(heard)
				require.NoError(t, Run(t.Context(), s.spec(), s.share(t, h)), h.said())
				got := resultOf(t, h)
				require.Equal(t, plan, got.Plan)
				require.Equal(t, 2, got.Workers)
				require.Equal(t, 12, got.Steps, "6 of each worker")
				require.NotEmpty(t, got.Metrics)
				stale := eventsOf[*event.Staleness](h)
				require.Len(t, stale, 1)
				require.GreaterOrEqual(t, stale[0].Gradients, 12)
				require.NotEmpty(t, stale[0].Histogram)
				require.Zero(t, h.count("peer_lost"), h.said())
				samples := 0
				for _, e := range eventsOf[*event.Step](h) {
					samples += e.Samples
				}
				require.Greater(t, samples, 6*s.spec().batchOf(t), "rank 0 reports the updates of both")
			})
		}
	}
}

// batchOf returns the rows of a micro-batch.
func (f Spec) batchOf(t *testing.T) int {
	s, err := f.Settle()
	require.NoError(t, err)
	return s.Batch
}

// A quorum of all workers gives the weights of allreduce.
func TestPSQuorum(t *testing.T) {
	want := resultOf(t, run(t, tinySpec(t)))
	for _, transport := range []string{crew.TransportInProcess, cluster.TransportAuto} {
		s, _ := newShared(t)
		s.Servers, s.Quorum, s.Transport = "2", 2, transport
		h := new(heard)
		require.NoError(t, Run(t.Context(), s.spec(), s.share(t, h)), h.said())
		got := resultOf(t, h)
		require.Equal(t, want.WeightsSHA256, got.WeightsSHA256)
		require.Equal(t, want.Steps, got.Steps)
		require.Equal(t, want.Metrics, got.Metrics, "rank 0 has all test rows")
		require.InDelta(t, want.Loss, got.Loss, 1e-6)
		require.Equal(t, []*event.Staleness{{Gradients: 12, Histogram: []int{12}}}, eventsOf[*event.Staleness](h))
	}
}

// A checkpoint resumes with another number of servers, and with other strategies.
func TestPSAsyncResume(t *testing.T) {
	for before, after := range map[string]string{"2": Colocated, Colocated: "3", "1": ""} {
		f := waitless(t, before)
		f.Steps, f.Saving.Dir, f.Saving.Every = 3, filepath.Join(t.TempDir(), "run"), 2
		require.NotEmpty(t, eventsOf[*event.Checkpoint](run(t, f)))
		again, steps := waitless(t, after), 12
		if after == "" {
			again, steps = tinySpec(t), 6
		}
		again.Data, again.Config = f.Data, f.Config
		again.Saving.Resume, again.Steps = f.Saving.Dir, 6
		h := run(t, again)
		require.Equal(t, 6, eventsOf[*event.Resumed](h)[0].Step)
		require.Equal(t, steps, resultOf(t, h).Steps, "%s, then %s", before, after)
	}
}

// A job with asynchronous servers that is asked to stop saves, and ends all processes
// without a failure.
func TestPSAsyncStop(t *testing.T) {
	for _, transport := range []string{crew.TransportInProcess, cluster.TransportAuto} {
		s, _ := newShared(t)
		s.Strategy, s.Servers, s.Transport = psAsync, "2", transport
		s.Dir = filepath.Join(t.TempDir(), "run")
		steps := testStops(t, s)
		saved, _ := Newest(s.Dir, "")
		require.Equal(t, steps, saved)
	}
}

// A server process that is killed ends the job. Workers and launcher name it.
func TestPSAsyncServerKilled(t *testing.T) {
	s, _ := newShared(t)
	s.Strategy, s.Servers, s.Steps = psAsync, "2", 1_000_000
	testServerKilled(t, s)
}

func TestAsynchronyRefused(t *testing.T) {
	for want, change := range map[string]func(f *Spec, a *Asynchrony){
		"--quorum must be at least 1, not -1":                      func(_ *Spec, a *Asynchrony) { a.Quorum = -1 },
		"--quorum must be at most the number of workers, 2, not 3": func(_ *Spec, a *Asynchrony) { a.Quorum = 3 },
		"--quorum 2 of 3 workers needs at most 2 servers, not 4": func(f *Spec, a *Asynchrony) {
			f.Workers, f.Gradients.Servers, a.Quorum = 3, "4", 2
		},
		"--quorum 2 of 3 workers needs at most 2 servers, not 3": func(f *Spec, a *Asynchrony) {
			f.Workers, f.Gradients.Servers, a.Quorum = 3, Colocated, 2
		},
		"--straggler-timeout must be longer than 0":                        func(_ *Spec, a *Asynchrony) { a.Timeout = -1 },
		`--max-staleness must be a number of updates, 0 or more, not "-2"`: func(_ *Spec, a *Asynchrony) { a.MaxStaleness = "-2" },
		`0 or more, not "few"`:                                             func(_ *Spec, a *Asynchrony) { a.MaxStaleness = "few" },
		`--stale must be drop or damp, not "keep"`:                         func(_ *Spec, a *Asynchrony) { a.Stale = "keep" },
		"--stale drop needs --max-staleness":                               func(_ *Spec, a *Asynchrony) { a.Stale = "drop" },
		"--straggler-timeout needs --quorum of at least 2":                 func(_ *Spec, a *Asynchrony) { a.Timeout = 1 },
		"--quorum needs --strategy ps-sync, ps-async or ps-peers": func(f *Spec, a *Asynchrony) {
			f.Strategy, f.Gradients.Servers, a.Quorum = "diloco", "", 1
		},
		"--straggler-timeout needs --strategy ps-sync or ps-async": func(f *Spec, a *Asynchrony) {
			f.Strategy, f.Gradients.Servers, a.Timeout = "allreduce", "", 1
		},
		"--max-staleness needs --strategy ps-async": func(f *Spec, a *Asynchrony) { f.Strategy, a.MaxStaleness = psSync, "1" },
		"--stale needs --strategy ps-async":         func(f *Spec, a *Asynchrony) { f.Strategy, a.Stale = psSync, "damp" },
		"cannot be combined with ps-async": func(f *Spec, _ *Asynchrony) {
			f.Gradients.Compress = "int8"
		},
		"leave out ps-async": func(f *Spec, _ *Asynchrony) {
			f.Place.Transport, f.Device.Device = cluster.TransportAuto, "cuda"
		},
	} {
		f := waitless(t, "2")
		change(&f, &f.Gradients.Asynchrony)
		_, err := runError(t, t.Context(), f, Options{})
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, want)
	}
}

// With ps-async a step is an update by one gradient, or by a quorum.
func TestUpdates(t *testing.T) {
	for _, c := range []struct {
		strategy                  string
		steps, quorum, workers, n int
	}{
		{"allreduce", 6, 0, 2, 6}, {psSync, 6, 1, 2, 6}, {psAsync, 6, 0, 2, 12}, {psAsync, 6, 2, 2, 6}, {psAsync, 5, 3, 4, 7}, {psPeers, 6, 2, 4, 6},
	} {
		f := Spec{Strategy: c.strategy}
		f.Gradients.Asynchrony.Quorum = c.quorum
		require.Equal(t, c.n, f.Updates(c.steps, c.workers), "%+v", c)
	}
}
