package job

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A job that switches as planned has the weights of one that does not, with servers in
// processes of their own, among the workers, and as goroutines.
func TestSwitch(t *testing.T) {
	want := resultOf(t, run(t, tinySpec(t)))
	for _, c := range []struct{ strategy, servers, plan string }{
		{psSync, "2", "2:allreduce,4:ps-sync"},
		{psSync, Colocated, "2:allreduce,4:ps-sync"},
		{"allreduce", "1", "1:ps-sync,5:allreduce"},
		{"allreduce", Colocated, "3:ps-sync,5:allreduce"},
		{"allreduce", "2", "7:ps-sync"}, // after the end: servers only wait
	} {
		for _, transport := range []string{crew.TransportInProcess, cluster.TransportAuto} {
			t.Run(c.strategy+" "+c.servers+" "+c.plan+" "+transport, func(t *testing.T) {
				s, _ := newShared(t)
				s.Strategy, s.Servers, s.Switch, s.Transport = c.strategy, c.servers, c.plan, transport
				h := new(heard)
				require.NoError(t, Run(t.Context(), s.spec(), s.share(t, h)), h.said())
				got := resultOf(t, h)
				require.Equal(t, want.WeightsSHA256, got.WeightsSHA256)
				require.Equal(t, 6, got.Steps)
				require.Equal(t, 6, h.count("step"))
				require.Zero(t, h.count("peer_lost"), h.said())
				f := s.spec()
				made := eventsOf[*event.Switched](h)
				if c.plan == "7:ps-sync" {
					require.Empty(t, made)
					return
				}
				require.Len(t, made, 2)
				for i, planned := range f.switches() {
					require.Equal(t, planned.Steps, made[i].Step)
					require.Equal(t, planned.Strategy, made[i].Strategy)
					require.Positive(t, made[i].Ms)
				}
				require.Contains(t, got.Plan, ", the last of 2 switches")
			})
		}
	}
}

// Without --switch, a job with allreduce has no servers of its own.
func TestSwitchServers(t *testing.T) {
	f := tinySpec(t)
	require.Zero(t, f.ServerProcesses())
	f.Gradients.Switch = "5:ps-sync"
	require.Equal(t, 1, f.ServerProcesses())
	f.Gradients.Servers = "3"
	require.Equal(t, 3, f.ServerProcesses())
	f.Gradients.Servers = Colocated
	require.Zero(t, f.ServerProcesses())
}

// A run resumes with the strategy that the plan has at that step.
func TestSwitchResume(t *testing.T) {
	want := resultOf(t, run(t, tinySpec(t)))
	f := tinySpec(t)
	f.Steps, f.Saving.Dir = 4, filepath.Join(t.TempDir(), "run")
	f.Gradients.Switch, f.Gradients.Servers = "2:ps-sync,5:allreduce", "2"
	run(t, f)
	again := f
	again.Saving.Resume, again.Steps = f.Saving.Dir, 6
	h := run(t, again)
	require.Equal(t, want.WeightsSHA256, resultOf(t, h).WeightsSHA256)
	made := eventsOf[*event.Switched](h)
	require.Len(t, made, 2)
	require.Equal(t, &event.Switched{From: "allreduce", Strategy: psSync, Step: 4, Ms: made[0].Ms}, made[0])
	require.Equal(t, 5, made[1].Step)
}

// A signal that comes while the workers switch stops the job after a whole step.
func TestSwitchStop(t *testing.T) {
	for _, transport := range []string{crew.TransportInProcess, cluster.TransportAuto} {
		s, _ := newShared(t)
		s.Strategy, s.Servers, s.Switch, s.Transport, s.Steps = psSync, "1", "5:allreduce", transport, 1_000_000
		signals := make(chan os.Signal, 1)
		h := &heard{on: func(e event.Event) {
			if _, ok := e.(*event.Switched); ok {
				signals <- os.Interrupt
			}
		}}
		o := s.share(t, h)
		o.Signals = signals
		_, err := runError(t, t.Context(), s.spec(), o)
		var end *crew.EndError
		require.ErrorAs(t, err, &end)
		require.NoError(t, end.Err, h.said())
		require.Len(t, eventsOf[*event.Stopped](h), 1)
		require.Zero(t, h.count("peer_lost"), h.said())
	}
}

func TestSwitchRefused(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		`--switch must be STEP:STRATEGY,... with ascending steps from 1`:                                       func(f *Spec) { f.Gradients.Switch = "ps-sync" },
		`--switch must name allreduce or ps-sync, not "diloco"`:                                                func(f *Spec) { f.Gradients.Switch = "5:diloco" },
		"--switch cannot be combined with --strategy diloco: only allreduce and ps-sync can be switched":       func(f *Spec) { f.Strategy = diLoCo },
		"compressed gradients cannot be combined with ps-sync in --strategy or --switch: leave out --compress": func(f *Spec) { f.Gradients.Compress = "int8" },
		"--device cuda: parameter servers work in host memory": func(f *Spec) {
			f.Place.Transport, f.Device.Device = cluster.TransportAuto, "cuda"
		},
	} {
		f := tinySpec(t)
		f.Gradients.Switch = "5:ps-sync"
		change(&f)
		_, err := runError(t, t.Context(), f, Options{})
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, want)
	}
}
