package job

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// served returns tinySpec with parameter servers.
func served(t *testing.T, servers string) Spec {
	f := tinySpec(t)
	f.Strategy, f.Gradients.Servers = psSync, servers
	return f
}

// With any servers, as goroutines or processes, the weights are those of allreduce. Only
// workers count, and their events do not mention servers.
func TestServers(t *testing.T) {
	want := resultOf(t, run(t, tinySpec(t)))
	for servers, plan := range map[string]string{
		"1":       "2 workers and 1 parameter server, in ring order",
		"3":       "2 workers and 3 parameter servers, in ring order",
		Colocated: "2 workers, each also a parameter server, in ring order",
	} {
		for _, transport := range []string{crew.TransportInProcess, cluster.TransportAuto, cluster.TransportTCP} {
			t.Run(servers+" "+transport, func(t *testing.T) {
				s, _ := newShared(t)
				s.Servers, s.Transport = servers, transport
				h := new(heard)
				require.NoError(t, Run(t.Context(), s.spec(), s.share(t, h)), h.said())
				got := resultOf(t, h)
				require.Equal(t, want.WeightsSHA256, got.WeightsSHA256)
				require.Equal(t, plan, got.Plan)
				require.Equal(t, 2, got.Workers)
				require.Len(t, eventsOf[*event.View](h)[0].Members, 2)
				require.Zero(t, h.count("peer_lost"), h.said())
			})
		}
	}
	f := served(t, "")
	require.Equal(t, 1, f.ServerProcesses())
}

// A checkpoint resumes with another number of servers, and without them.
func TestServersResume(t *testing.T) {
	want := resultOf(t, run(t, tinySpec(t)))
	for before, after := range map[string]string{"2": Colocated, Colocated: "3", "1": ""} {
		f := served(t, before)
		f.Steps, f.Saving.Dir = 3, filepath.Join(t.TempDir(), "run")
		run(t, f)
		again := served(t, after)
		if after == "" {
			again = tinySpec(t)
		}
		again.Data, again.Config = f.Data, f.Config
		again.Saving.Resume, again.Steps = f.Saving.Dir, 6
		require.Equal(t, want.WeightsSHA256, resultOf(t, run(t, again)).WeightsSHA256, "%s, then %s", before, after)
	}
}

// A job with servers that is asked to stop ends all processes, without a failure.
func TestServersStop(t *testing.T) {
	for _, transport := range []string{crew.TransportInProcess, cluster.TransportAuto} {
		s, _ := newShared(t)
		s.Servers, s.Transport = "2", transport
		testStops(t, s)
	}
}

// testStops asks a job to stop after five steps, and returns after how many it did.
func testStops(t *testing.T, s sharedSpec) (steps int) {
	s.Steps = 1_000_000
	signals := make(chan os.Signal, 1)
	h := &heard{on: fromStep(5, func() { signals <- os.Interrupt })}
	o := s.share(t, h)
	o.Signals = signals
	_, err := runError(t, t.Context(), s.spec(), o)
	var end *crew.EndError
	require.ErrorAs(t, err, &end)
	require.Equal(t, os.Interrupt, end.Signal)
	require.NoError(t, end.Err, h.said())
	stopped := eventsOf[*event.Stopped](h)
	require.Len(t, stopped, 1)
	require.Zero(t, h.count("peer_lost"), h.said())
	return stopped[0].Steps
}

// A server process that is killed, and may not be started again, ends the job. Both workers and
// the launcher name it.
func TestServerKilled(t *testing.T) {
	s, _ := newShared(t)
	s.Servers, s.Steps, s.Restarts = "2", 1_000_000, 0
	testServerKilled(t, s)
}

// testServerKilled kills the last of two servers of a run with two workers.
func testServerKilled(t *testing.T, s sharedSpec) {
	testKilled(t, s, 3, "server 3 (pid ", 0, 1, 2)
}

// testKilled kills a process after five steps. The job's error names it, and the other ranks
// report it.
func testKilled(t *testing.T, s sharedSpec, local int, named string, others ...int) {
	var killed time.Time
	h := &heard{on: fromStep(5, func() {
		pid := pidOf(local)
		require.NotZero(t, pid)
		killed = time.Now()
		killProcess(t, pid)
	})}
	o := s.share(t, h)
	o.Verbatim = true
	_, err := runError(t, t.Context(), s.spec(), o)
	require.WithinDuration(t, killed, time.Now(), 10*time.Second)
	require.ErrorContains(t, err, named)
	seen := map[int]bool{}
	for _, e := range eventsOf[*event.Lost](h) {
		require.Equal(t, local, e.Rank)
		seen[e.SeenBy] = true
	}
	require.ElementsMatch(t, others, slices.Collect(maps.Keys(seen)), h.said())
}

func TestServersRefused(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"--servers needs --strategy ps-sync or ps-async, or ps-sync in --switch": func(f *Spec) { f.Strategy = "allreduce" },
		`--servers must be colocated or a number of processes from 1 to 1024`:    func(f *Spec) { f.Gradients.Servers = "many" },
		`not "0"`:                         func(f *Spec) { f.Gradients.Servers = "0" },
		`not "1025"`:                      func(f *Spec) { f.Gradients.Servers = "1025" },
		"cannot be combined with ps-sync": func(f *Spec) { f.Gradients.Compress = "int8" },
		"--device cuda: parameter servers work in host memory": func(f *Spec) {
			f.Place.Transport, f.Device.Device = cluster.TransportAuto, "cuda"
		},
	} {
		f := served(t, "2")
		change(&f)
		_, err := runError(t, t.Context(), f, Options{})
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, want)
	}
	f := served(t, "2")
	f.Place.Process.Launched = &cluster.Launched{By: "Slurm"}
	require.ErrorContains(t, f.Check(), "Slurm has started all processes: use --servers colocated")
}

// Jobs whose first calls differ have different descriptions of their processes.
func TestProcesses(t *testing.T) {
	for want, change := range map[string]func(f *Spec){
		"allreduce":                          func(*Spec) {},
		"diloco":                             func(f *Spec) { f.Strategy = diLoCo },
		"ps-sync --servers 1":                func(f *Spec) { f.Strategy = psSync },
		"ps-async --servers 2":               func(f *Spec) { f.Strategy, f.Gradients.Servers = psAsync, "2" },
		"ps-sync --servers colocated":        func(f *Spec) { f.Strategy, f.Gradients.Servers = psSync, Colocated },
		"ps-sync --servers 1 --max-restarts": func(f *Spec) { f.Strategy, f.Gradients.Restarts, f.Place.Transport = psSync, 3, "" },
	} {
		f := tinySpec(t)
		change(&f)
		require.Equal(t, want, processes(&f))
	}
}
