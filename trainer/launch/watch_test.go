//go:build unix

package launch

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// format writes orders as "0:terminated 1:killed".
func format(orders []order) string {
	var all []string
	for _, o := range orders {
		all = append(all, fmt.Sprintf("%d:%v", o.id, o.sig))
	}
	return strings.Join(all, " ")
}

func newWatch(workers int) *watch {
	w := &watch{grace: 10 * time.Second, term: 5 * time.Second}
	for i := range workers {
		w.started(fmt.Sprintf("worker %d", i), 100+i, nil)
	}
	return w
}

// at is a time in the job, in seconds, and what happens then.
type at struct {
	s    float64
	what func(w *watch, now time.Duration) []order
	want string
}

func exit(id, code int) func(*watch, time.Duration) []order {
	return func(w *watch, now time.Duration) []order { return w.exited(now, id, code, 0) }
}

func die(id int, sig syscall.Signal) func(*watch, time.Duration) []order {
	return func(w *watch, now time.Duration) []order { return w.exited(now, id, -1, sig) }
}

func stopped(w *watch, now time.Duration) []order { return w.stop(now, errEnough) }
func tick(w *watch, now time.Duration) []order    { return w.tick(now) }
func pass(sig syscall.Signal) func(*watch, time.Duration) []order {
	return func(w *watch, _ time.Duration) []order { return w.signal(sig) }
}

var errEnough = errors.New("enough")

func TestWatch(t *testing.T) {
	tests := []struct {
		name   string
		script []at
		root   string // "" if none
		cause  error
		byUs   []bool
	}{
		{
			name:   "all succeed",
			script: []at{{1, exit(0, 0), ""}, {2, exit(1, 0), ""}, {3, exit(2, 0), ""}},
			byUs:   []bool{false, false, false},
		}, {
			name: "survivors exit within the grace period",
			script: []at{
				{1, die(1, syscall.SIGKILL), ""}, {1.1, exit(0, 1), ""}, {10.9, tick, ""}, {10.9, exit(2, 1), ""},
			},
			root: "worker 1 (pid 101) was killed by signal 9 (killed)",
			byUs: []bool{false, false, false},
		}, {
			name: "the survivors' exits are seen first",
			script: []at{
				{1, exit(0, 1), ""}, {1.1, exit(2, 1), ""}, {2.9, die(1, syscall.SIGSEGV), ""},
			},
			root: "worker 1 (pid 101) was killed by signal 11 (segmentation fault)",
			byUs: []bool{false, false, false},
		}, {
			name: "a death by signal after the window does not count",
			script: []at{
				{1, exit(0, 1), ""}, {1.1, exit(2, 1), ""}, {3.1, die(1, syscall.SIGSEGV), ""},
			},
			root: "worker 0 (pid 100) exited with code 1",
			byUs: []bool{false, false, false},
		}, {
			name: "grace, SIGTERM, SIGKILL",
			script: []at{
				{1, exit(0, 3), ""}, {10.9, tick, ""}, {11, tick, "1:terminated 2:terminated"}, {12, tick, ""},
				{13, exit(1, 75), ""}, {16, tick, "2:killed"}, {99, tick, ""}, {99, die(2, syscall.SIGKILL), ""},
			},
			root: "worker 0 (pid 100) exited with code 3",
			byUs: []bool{false, true, true},
		}, {
			name: "stop has no grace period",
			script: []at{
				{1, stopped, "0:terminated 1:terminated 2:terminated"}, {2, stopped, ""},
				{2, exit(0, 0), ""}, {3, die(1, syscall.SIGTERM), ""}, {6, tick, "2:killed"}, {6, die(2, syscall.SIGKILL), ""},
			},
			cause: errEnough,
			byUs:  []bool{true, true, true},
		}, {
			name: "stop ends the grace period",
			script: []at{
				{1, exit(0, 3), ""}, {2, stopped, "1:terminated 2:terminated"},
				{2, exit(1, 0), ""}, {7, tick, "2:killed"}, {7, die(2, syscall.SIGKILL), ""},
			},
			root:  "worker 0 (pid 100) exited with code 3",
			cause: errEnough,
			byUs:  []bool{false, true, true},
		}, {
			name: "killed from outside before SIGKILL is not ByUs",
			script: []at{
				{1, stopped, "0:terminated 1:terminated 2:terminated"},
				{2, die(0, syscall.SIGKILL), ""}, {2, exit(1, 0), ""}, {2, exit(2, 0), ""},
			},
			root:  "worker 0 (pid 100) was killed by signal 9 (killed)",
			cause: errEnough,
			byUs:  []bool{false, true, true},
		}, {
			name: "a forwarded SIGTERM is not a failure",
			script: []at{
				{1, pass(syscall.SIGTERM), "0:terminated 1:terminated 2:terminated"}, {2, exit(0, 75), ""},
				{900, tick, ""}, {901, exit(1, 75), ""}, {902, die(2, syscall.SIGTERM), ""},
			},
			byUs: []bool{true, true, true},
		}, {
			name: "a crash while saving is a failure",
			script: []at{
				{1, pass(syscall.SIGTERM), "0:terminated 1:terminated 2:terminated"},
				{2, die(0, syscall.SIGSEGV), ""}, {12, tick, "1:terminated 2:terminated"},
				{13, exit(1, 75), ""}, {14, exit(2, 75), ""},
			},
			root: "worker 0 (pid 100) was killed by signal 11 (segmentation fault)",
			byUs: []bool{false, true, true},
		}, {
			name: "SIGUSR1 does not ask workers to end",
			script: []at{
				{1, pass(syscall.SIGUSR1), "0:user defined signal 1 1:user defined signal 1 2:user defined signal 1"},
				{2, exit(0, 1), ""}, {2, exit(1, 0), ""}, {2, exit(2, 0), ""},
			},
			root: "worker 0 (pid 100) exited with code 1",
			byUs: []bool{false, false, false},
		}, {
			name: "a late tick enters both phases",
			script: []at{
				{1, exit(0, 1), ""}, {11, tick, "1:terminated 2:terminated"}, {99, tick, "1:killed 2:killed"},
				{99, die(1, syscall.SIGKILL), ""}, {99, die(2, syscall.SIGKILL), ""},
			},
			root: "worker 0 (pid 100) exited with code 1",
			byUs: []bool{false, true, true},
		}, {
			name:   "a stop after all exits has no effect",
			script: []at{{1, exit(0, 0), ""}, {1, exit(1, 0), ""}, {1, exit(2, 0), ""}, {2, stopped, ""}},
			byUs:   []bool{false, false, false},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWatch(3)
			for _, step := range test.script {
				now := time.Duration(step.s * float64(time.Second))
				require.Equal(t, step.want, format(step.what(w, now)), "at %v", now)
			}
			require.Zero(t, w.alive())
			_, ok := w.next()
			require.False(t, ok, "nothing is due without live workers")
			got := w.outcome(2 * time.Second)
			if test.root == "" {
				require.Nil(t, got.Root)
			} else {
				require.NotNil(t, got.Root)
				require.Equal(t, test.root, got.Root.String())
			}
			require.Equal(t, test.cause, got.Cause)
			for i, e := range got.Exits {
				require.Equal(t, test.byUs[i], e.ByUs, "%v", e)
			}
		})
	}
}

func TestZeroTimeouts(t *testing.T) {
	w := newWatch(2)
	w.grace, w.term = 0, 0
	require.Equal(t, "1:terminated 1:killed", format(w.exited(time.Second, 0, 1, 0)))
}

// Whatever happens in whatever order: no dead worker is signalled, no live worker is
// forgotten at a deadline, and what the job asked for is never the root cause.
func TestWatchProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 5).Draw(t, "size")
		w := newWatch(size)
		alive := map[int]bool{}
		for i := range size {
			alive[i] = true
		}
		var now, begun time.Duration
		begun = -1
		asked := map[int]map[syscall.Signal]bool{}
		check := func(orders []order) {
			for _, o := range orders {
				require.True(t, alive[o.id], "signal to a dead worker")
				if asked[o.id] == nil {
					asked[o.id] = map[syscall.Signal]bool{}
				}
				require.False(t, asked[o.id][o.sig], "sent the same signal twice")
				asked[o.id][o.sig] = true
			}
		}
		for len(alive) > 0 {
			now += time.Duration(rapid.IntRange(0, 6).Draw(t, "pause")) * time.Second
			if due, ok := w.next(); ok && due <= now {
				check(w.tick(due))
				if due, ok := w.next(); ok && due <= now {
					check(w.tick(due))
				}
			}
			if begun >= 0 && now >= begun+w.grace+w.term {
				for id := range alive {
					require.True(t, asked[id][syscall.SIGTERM] && asked[id][syscall.SIGKILL], "forgotten")
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "stop") == 0 {
				if begun < 0 {
					begun = now
				}
				check(w.stop(now, errEnough))
				continue
			}
			id := rapid.SampledFrom(keys(alive, size)).Draw(t, "who")
			code := rapid.IntRange(0, 2).Draw(t, "code")
			sig := rapid.SampledFrom([]syscall.Signal{0, syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGTERM}).Draw(t, "signal")
			delete(alive, id)
			check(w.exited(now, id, code, sig))
			if e := w.workers[id].exit; e.Failed() && !e.ByUs && begun < 0 {
				begun = now
			}
		}
		got := w.outcome(2 * time.Second)
		if got.Root != nil {
			require.False(t, got.Root.ByUs)
		} else {
			for _, e := range got.Exits {
				require.True(t, e.ByUs || !e.Failed(), "a failure without a root")
			}
		}
	})
}

func keys(alive map[int]bool, size int) []int {
	var all []int
	for i := range size {
		if alive[i] {
			all = append(all, i)
		}
	}
	return all
}

// A worker that may be spared does not end the others, and is not the root cause. One that is
// not spared is.
func TestWatchSpares(t *testing.T) {
	w := newWatch(1)
	asked := 0
	spare := func(e Exit) bool { asked++; return e.Signal == syscall.SIGKILL }
	for range 3 {
		w.started("server", 200, spare)
	}
	require.Empty(t, w.exited(time.Second, 1, -1, syscall.SIGKILL))
	require.Equal(t, running, w.phase)
	require.Equal(t, "2:killed", format(w.kill(2)))
	require.Empty(t, w.exited(2*time.Second, 2, -1, syscall.SIGKILL))
	require.Empty(t, w.kill(2), "it has ended")
	require.Equal(t, 1, asked, "nobody is asked about what the job has asked for")
	w.exited(3*time.Second, 3, 1, 0)
	require.Equal(t, grace, w.phase)
	w.exited(4*time.Second, 0, 0, 0)
	got := w.outcome(5 * time.Second)
	require.Equal(t, &got.Exits[3], got.Root)
	require.True(t, got.Exits[1].Spared)
	require.False(t, got.Exits[1].ByUs)
	require.True(t, got.Exits[2].ByUs && got.Exits[2].Spared)
	require.False(t, got.Exits[3].Spared)
	got.Root = nil
	require.ErrorContains(t, got.Err(), "exited with code 1")
}
