package job

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// As goroutines or processes, over any transport and with a key, each worker takes all steps.
// Rank 0 evaluates all test rows, and the result says which part of the gradients was used.
func TestPSPeers(t *testing.T) {
	for quorum, plan := range map[int]string{
		0: "2 workers, each the owner of some parameters, ps-peers, updates of all gradients",
		2: "2 workers, each the owner of some parameters, ps-peers, updates of 2 gradients",
		5: "2 workers, each the owner of some parameters, ps-peers, updates of 5 gradients",
	} {
		for _, transport := range []string{crew.TransportInProcess, cluster.TransportAuto, cluster.TransportTCP} {
			t.Run(plan+" "+transport, func(t *testing.T) {
				s, _ := newShared(t)
				s.Strategy, s.Quorum, s.Transport = psPeers, quorum, transport
				if transport == cluster.TransportTCP {
					s.KeyFile = filepath.Join(t.TempDir(), "key")
					key := secret.New()
					require.NoError(t, secret.WriteFile(s.KeyFile, key))
				}
				h := new(heard)
				require.NoError(t, Run(t.Context(), s.spec(), s.share(t, h)), h.said())
				got := resultOf(t, h)
				require.Equal(t, plan, got.Plan)
				require.Equal(t, 2, got.Workers)
				require.Equal(t, 6, got.Steps)
				require.NotEmpty(t, got.Metrics)
				stale := eventsOf[*event.Staleness](h)
				require.Len(t, stale, 1)
				require.Equal(t, 6*2*2, stale[0].Gradients, "each step of each worker, for each owner")
				require.Zero(t, h.count("peer_lost"), h.said())
				samples := 0
				for _, e := range eventsOf[*event.Step](h) {
					samples += e.Samples
				}
				require.Equal(t, 2*6*s.spec().batchOf(t), samples, "rank 0 reports the rows of both")
			})
		}
	}
}

// One worker has the weights of allreduce.
func TestPSPeersAlone(t *testing.T) {
	f := tinySpec(t)
	f.Workers = 1
	want := resultOf(t, run(t, f))
	f.Strategy = psPeers
	got := resultOf(t, run(t, f))
	require.Equal(t, want.WeightsSHA256, got.WeightsSHA256)
	require.Equal(t, want.Metrics, got.Metrics)
}

// A checkpoint resumes with another number of workers, and with other strategies.
func TestPSPeersResume(t *testing.T) {
	for name, change := range map[string]func(f *Spec){
		"3 workers": func(f *Spec) { f.Workers = 3 },
		"1 worker":  func(f *Spec) { f.Workers = 1 },
		"allreduce": func(f *Spec) { f.Strategy = allReduce },
		"ps-sync":   func(f *Spec) { f.Strategy = psSync },
	} {
		f := tinySpec(t)
		f.Strategy, f.Steps, f.Saving.Dir, f.Saving.Every = psPeers, 3, filepath.Join(t.TempDir(), "run"), 2
		require.Len(t, eventsOf[*event.Checkpoint](run(t, f)), 2, name)
		again := f
		again.Saving.Resume, again.Steps = f.Saving.Dir, 6
		change(&again)
		h := run(t, again)
		require.Equal(t, 3, eventsOf[*event.Resumed](h)[0].Step, name)
		require.Equal(t, 6, resultOf(t, h).Steps, name)
	}
}

// A job that is asked to stop saves, and ends all processes without a failure.
func TestPSPeersStop(t *testing.T) {
	for _, transport := range []string{crew.TransportInProcess, cluster.TransportAuto} {
		s, _ := newShared(t)
		s.Strategy, s.Transport = psPeers, transport
		s.Dir = filepath.Join(t.TempDir(), "run")
		steps := testStops(t, s)
		saved, _ := Newest(s.Dir, "")
		require.Equal(t, steps, saved)
	}
}

// A worker that is killed takes its share along, so the job ends. All others name it.
func TestPSPeersWorkerKilled(t *testing.T) {
	s, _ := newShared(t)
	s.Strategy, s.Workers, s.Steps = psPeers, 3, 1_000_000
	testKilled(t, s, 2, "worker 2 (pid ", 0, 1)
}

func TestPSPeersRefused(t *testing.T) {
	for want, change := range map[string]func(f *Spec){
		"--quorum must be at least 1, not -1":       func(f *Spec) { f.Gradients.Asynchrony.Quorum = -1 },
		"--servers needs --strategy ps-sync":        func(f *Spec) { f.Gradients.Servers = "2" },
		"--max-staleness needs --strategy ps-async": func(f *Spec) { f.Gradients.Asynchrony.MaxStaleness = "1" },
		"--straggler-timeout needs":                 func(f *Spec) { f.Gradients.Asynchrony.Timeout = 1 },
		"--switch cannot be combined with --strategy ps-peers": func(f *Spec) {
			f.Gradients.Switch = "3:allreduce"
		},
		"cannot be combined with ps-peers": func(f *Spec) { f.Gradients.Compress = "int8" },
		"leave out ps-peers": func(f *Spec) {
			f.Place.Transport, f.Device.Device = cluster.TransportAuto, "cuda"
		},
	} {
		f := tinySpec(t)
		f.Strategy = psPeers
		change(&f)
		_, err := runError(t, t.Context(), f, Options{})
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, want)
	}
}
