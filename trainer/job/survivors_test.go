package job

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// surviving returns the spec of a run of 4 workers in which updates do not wait for all.
func surviving(t *testing.T, strategy string) sharedSpec {
	s, _ := newShared(t)
	s.Strategy, s.Servers, s.Workers, s.Steps, s.Restarts = strategy, "1", 4, 250, 0
	if strategy == psSync {
		s.Quorum, s.Steps = 3, 1000
	}
	return s
}

// killWorkers runs a job and kills workers -9, the first when when says so, and each further one
// after the loss of the one before.
func killWorkers(t *testing.T, s sharedSpec, when func(event.Event) bool, workers ...int) (*heard, error) {
	var mu sync.Mutex
	h := &heard{}
	h.on = func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		lost, ok := e.(*event.Lost)
		if len(workers) > 0 && (when != nil && when(e) || when == nil && ok && lost.Left > 0) {
			if pid := pidOf(workers[0]); pid != 0 {
				workers, when = workers[1:], nil
				killProcess(t, pid)
			}
		}
	}
	return h, Run(t.Context(), s.spec(), s.share(t, h))
}

// atStep is true from a step on.
func atStep(n int) func(event.Event) bool {
	return func(e event.Event) bool {
		step, ok := e.(*event.Step)
		return ok && step.Step >= n
	}
}

// survived checks a job that has gone on without workers.
func survived(t *testing.T, s sharedSpec, h *heard, err error, workers ...int) {
	require.NoError(t, err, h.said())
	got := resultOf(t, h)
	steps := s.spec()
	require.Equal(t, steps.Updates(s.Steps, s.Workers), got.Steps)
	require.Equal(t, s.Workers, got.Workers)
	require.Equal(t, s.Workers-len(workers), got.Left)
	require.NotEmpty(t, got.Metrics)
	lost := eventsOf[*event.Lost](h)
	require.Len(t, lost, len(workers), "each is named once: %v", lost)
	for i, e := range lost {
		require.Equal(t, workers[i], e.Rank)
		require.Contains(t, e.Node, fmt.Sprintf("/%d", workers[i]))
		require.Equal(t, s.Workers-i-1, e.Left)
	}
	require.NotContains(t, h.said(), "killed", "the event names it")
}

// A run whose servers do not wait for all workers continues without one that is killed,
// whatever carries its messages.
func TestWorkerKilled(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	fresh := secret.New()
	require.NoError(t, secret.WriteFile(key, fresh))
	for _, strategy := range []string{psAsync, psSync} {
		for _, servers := range []string{"1", "2"} {
			for _, transport := range []string{cluster.TransportAuto, cluster.TransportTCP} {
				for _, key := range []string{"", key} {
					name := fmt.Sprintf("%s, %s servers, %s, key %v", strategy, servers, transport, key != "")
					t.Run(name, func(t *testing.T) {
						usual := strategy == psAsync && servers == "1" && transport == cluster.TransportAuto && key == "" ||
							strategy == psSync && servers == "2" && transport == cluster.TransportTCP && key != ""
						if !usual {
							collectivetest.Slow(t)
						}
						s := surviving(t, strategy)
						s.Servers, s.Transport, s.KeyFile = servers, transport, key
						s.Dir, s.Every = filepath.Join(t.TempDir(), "run"), 200
						h, err := killWorkers(t, s, atStep(5), 2)
						survived(t, s, h, err, 2)
						step, _ := Newest(s.Dir, "")
						require.Equal(t, resultOf(t, h).Steps, step, "it saves")
					})
				}
			}
		}
	}
}

// Workers may be killed one after the other, as long as most of the processes are left. A
// quorum is then of those that are.
func TestWorkersKilled(t *testing.T) {
	for _, strategy := range []string{psAsync, psSync} {
		t.Run(strategy, func(t *testing.T) {
			if strategy == psAsync {
				collectivetest.Slow(t)
			}
			s := surviving(t, strategy)
			s.Steps *= 4 // the training must not end before both losses are known, even on a busy machine
			h, err := killWorkers(t, s, atStep(5), 3, 1)
			survived(t, s, h, err, 3, 1)
		})
	}
}

// A worker that is killed before training, or at its end, either does no harm or is named.
func TestWorkerKilledEarlyOrLate(t *testing.T) {
	collectivetest.Slow(t)
	total := 4 * surviving(t, psAsync).Steps
	for name, when := range map[string]func(event.Event) bool{
		"at the view":        func(e event.Event) bool { _, ok := e.(*event.View); return ok },
		"in the first steps": atStep(1),
		"in the last steps":  atStep(total - 3),
		"at the last step":   atStep(total),
		"at the end": func(e event.Event) bool {
			eval, ok := e.(*event.Eval)
			return ok && eval.Step == total
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := surviving(t, psAsync)
			h, err := killWorkers(t, s, when, 2)
			if err == nil {
				require.Equal(t, total, resultOf(t, h).Steps)
				require.LessOrEqual(t, h.count("peer_lost"), 1)
				return
			}
			require.ErrorContains(t, err, "worker 2 (pid ")
			require.ErrorContains(t, err, "signal 9 (killed)")
		})
	}
}

// Worker 0 evaluates and saves, so the job ends without it. So it does without a worker that
// is also a server, and if updates need all workers.
func TestWorkerKilledEndsJob(t *testing.T) {
	for name, change := range map[string]func(s *sharedSpec) (victim int){
		"worker 0":  func(*sharedSpec) int { return 0 },
		"colocated": func(s *sharedSpec) int { s.Servers = Colocated; return 2 },
		"ps-sync":   func(s *sharedSpec) int { s.Strategy, s.Quorum = psSync, 0; return 2 },
	} {
		t.Run(name, func(t *testing.T) {
			s := surviving(t, psAsync)
			s.Steps = 1_000_000
			victim := change(&s)
			h, err := killWorkers(t, s, atStep(5), victim)
			var end *crew.EndError
			require.ErrorAs(t, err, &end, h.said())
			require.True(t, errors.As(err, &end) && end.Begun)
			require.ErrorContains(t, err, fmt.Sprintf("worker %d (pid ", victim))
			require.ErrorContains(t, err, "signal 9 (killed)")
			require.Zero(t, h.count("result"))
		})
	}
}
