package paramserver

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// timeFor returns the virtual time in which workers make some updates, and what became of
// their gradients. Worker w computes a gradient in compute[w], and messages take no time.
func timeFor(t *testing.T, p Policy, updates int, compute ...time.Duration) (time.Duration, Staleness) {
	v := newVirtual(p, len(compute), updates)
	type running struct {
		until   time.Duration
		version int
		waits   bool // for an answer
	}
	workers, now, answered := make([]running, len(compute)), time.Duration(0), 0
	for w, d := range compute {
		workers[w].until = d
	}
	restart := func(w int, at time.Duration, version int) {
		workers[w] = running{at + compute[w], version, false}
	}
	for !v.done() {
		next, first := -1, time.Duration(0)
		for w, r := range workers {
			if !r.waits && (next < 0 || r.until < first) {
				next, first = w, r.until
			}
		}
		now = first
		if due := v.due.Sub(v.begin); next < 0 || !v.due.IsZero() && due < first {
			now, next = due, -1
			v.until(now)
		} else {
			used, err := v.arbiter.push(gradient{worker: next, version: workers[next].version, rows: 1}, v.begin.Add(now))
			require.NoError(t, err)
			if workers[next].waits = true; !used {
				restart(next, now, v.version)
			}
			v.settle(now)
		}
		for ; answered < len(v.updates); answered++ {
			for _, w := range v.updates[answered].workers {
				restart(w, now, answered+1)
			}
		}
	}
	return now, v.stale
}

// One worker that is 10 times as slow as the others costs a job that does not wait for it at
// most 1.3 times the time of an even run.
func TestStragglerCosts(t *testing.T) {
	const ms = time.Millisecond
	everyone := Policy{Quorum: Everyone, Bounded: true}
	even, stale := timeFor(t, everyone, 200, 50*ms, 50*ms, 50*ms, 50*ms)
	require.Equal(t, 200*50*ms, even)
	require.Zero(t, stale.Discarded())
	waiting, _ := timeFor(t, everyone, 200, 50*ms, 50*ms, 50*ms, 500*ms)
	require.Equal(t, 10*even, waiting)
	for name, c := range map[string]struct {
		policy Policy
		most   float64
	}{
		"a quorum":            {Policy{Quorum: 3, Bounded: true}, 1},
		"a timeout":           {Policy{Quorum: Everyone, Timeout: 10 * ms, Bounded: true}, 1.2},
		"a quorum, or a time": {Policy{Quorum: 2, Timeout: 10 * ms, Bounded: true}, 1},
	} {
		took, stale := timeFor(t, c.policy, 200, 50*ms, 50*ms, 50*ms, 500*ms)
		require.InDelta(t, c.most, float64(took)/float64(even), .02, name)
		require.Positive(t, stale.Dropped, name)
	}
	// Nobody waits in ps-async: 4 gradients of each 50 ms make 4 updates.
	even, _ = timeFor(t, Policy{}, 800, 50*ms, 50*ms, 50*ms, 50*ms)
	took, stale := timeFor(t, Policy{}, 800, 50*ms, 50*ms, 50*ms, 500*ms)
	require.InDelta(t, 4/3.1, float64(took)/float64(even), .02)
	require.Positive(t, slices.Max(stale.Histogram[25:]), "the straggler's")
}
