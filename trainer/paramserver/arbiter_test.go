package paramserver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A pushing is a gradient that comes at a time, and what becomes of it.
type pushing struct {
	at      time.Duration
	worker  int
	version int
	used    bool
}

// An updating is an update at a time.
type updating struct {
	at      time.Duration
	workers []int
	factor  float32
}

// A virtual runs an arbiter in virtual time: each gradient that comes, and the end of each
// timeout, is followed by the updates that are then ready.
type virtual struct {
	*arbiter
	begin   time.Time
	updates []updating
}

func newVirtual(p Policy, workers, limit int) *virtual {
	return &virtual{arbiter: newArbiter(p, workers, 0, limit), begin: time.Unix(0, 0)}
}

// until makes the updates that are due by a time.
func (v *virtual) until(at time.Duration) {
	if !v.due.IsZero() && !v.due.After(v.begin.Add(at)) {
		v.settle(v.due.Sub(v.begin))
	}
}

func (v *virtual) settle(at time.Duration) {
	for v.ready(v.begin.Add(at)) {
		u := v.take()
		made := updating{at: at, factor: u.factor}
		for _, g := range u.gradients {
			made.workers = append(made.workers, g.worker)
		}
		v.updates = append(v.updates, made)
	}
}

func (v *virtual) push(t require.TestingT, p pushing) {
	v.until(p.at)
	used, err := v.arbiter.push(gradient{worker: p.worker, version: p.version, rows: 1, loss: 1}, v.begin.Add(p.at))
	require.NoError(t, err)
	require.Equal(t, p.used, used, "%+v", p)
	v.settle(p.at)
}

func TestArbiter(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		policy  Policy
		workers int
		limit   int
		pushes  []pushing
		updates []updating
		stale   Staleness
	}{
		"first come, first applied": {
			Policy{}, 2, 0,
			[]pushing{{0, 1, 0, true}, {1, 0, 0, true}, {2, 1, 1, true}},
			[]updating{{0, []int{1}, 1}, {1, []int{0}, 1}, {2, []int{1}, 1}},
			Staleness{Applied: 3, Histogram: []int{1, 2}},
		},
		"late gradients are dropped": {
			Policy{Bounded: true, MaxStaleness: 1}, 3, 0,
			[]pushing{{0, 0, 0, true}, {1, 1, 0, true}, {2, 2, 0, false}, {3, 2, 2, true}},
			[]updating{{0, []int{0}, 1}, {1, []int{1}, 1}, {3, []int{2}, 1}},
			Staleness{Applied: 3, Dropped: 1, Histogram: []int{2, 1, 1}},
		},
		"late gradients are damped": {
			Policy{Bounded: true, MaxStaleness: 1, Damp: true}, 4, 0,
			[]pushing{{0, 0, 0, true}, {1, 1, 0, true}, {2, 2, 0, true}, {3, 3, 0, true}},
			[]updating{{0, []int{0}, 1}, {1, []int{1}, 1}, {2, []int{2}, 1. / 3}, {3, []int{3}, .25}},
			Staleness{Applied: 2, Damped: 2, Histogram: []int{1, 1, 1, 1}},
		},
		"a quorum, by worker": {
			Policy{Quorum: 2}, 3, 0,
			[]pushing{{0, 2, 0, true}, {1, 0, 0, true}, {2, 1, 0, true}, {3, 0, 1, true}},
			[]updating{{1, []int{0, 2}, 1}, {3, []int{0, 1}, 1}},
			Staleness{Applied: 4, Histogram: []int{3, 1}},
		},
		"a damped quorum": {
			Policy{Quorum: 2, Bounded: true, Damp: true}, 3, 0,
			[]pushing{{0, 0, 0, true}, {0, 1, 0, true}, {1, 2, 0, true}, {2, 0, 1, true}},
			[]updating{{0, []int{0, 1}, 1}, {2, []int{0, 2}, .75}},
			Staleness{Applied: 3, Damped: 1, Histogram: []int{3, 1}},
		},
		"k of n": { // worker 2 is slow, and its gradient of version 0 comes after two updates
			Policy{Quorum: 2, Bounded: true}, 3, 0,
			[]pushing{{0, 0, 0, true}, {1, 1, 0, true}, {2, 0, 1, true}, {3, 1, 1, true}, {9, 2, 0, false}, {10, 0, 2, true}, {11, 2, 2, true}},
			[]updating{{1, []int{0, 1}, 1}, {3, []int{0, 1}, 1}, {11, []int{0, 2}, 1}},
			Staleness{Applied: 6, Dropped: 1, Histogram: []int{6, 0, 1}},
		},
		"a timeout counts from the first gradient": {
			Policy{Quorum: 3, Timeout: 20 * ms, Bounded: true}, 3, 0,
			[]pushing{{5 * ms, 0, 0, true}, {24 * ms, 1, 0, true}, {26 * ms, 2, 0, false}, {30 * ms, 2, 1, true}, {30 * ms, 0, 1, true}, {31 * ms, 1, 1, true}},
			[]updating{{25 * ms, []int{0, 1}, 1}, {31 * ms, []int{0, 1, 2}, 1}},
			Staleness{Applied: 5, Dropped: 1, Histogram: []int{5, 1}},
		},
		"nothing after the limit": {
			Policy{}, 2, 2,
			[]pushing{{0, 0, 0, true}, {1, 1, 0, true}, {2, 0, 1, false}},
			[]updating{{0, []int{0}, 1}, {1, []int{1}, 1}},
			Staleness{Applied: 2, Unused: 1, Histogram: []int{1, 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVirtual(c.policy, c.workers, c.limit)
			for _, p := range c.pushes {
				v.push(t, p)
			}
			require.Equal(t, c.updates, v.updates)
			require.Equal(t, len(c.updates), v.version)
			for len(c.stale.Histogram) < staleBins {
				c.stale.Histogram = append(c.stale.Histogram, 0)
			}
			require.Equal(t, c.stale, v.stale)
			require.Equal(t, c.stale, stalenessOf(v.stale.words()))
		})
	}
}

// A stop makes a last update of the gradients that have come.
func TestArbiterStops(t *testing.T) {
	v := newVirtual(Policy{Quorum: 3}, 3, 0)
	v.push(t, pushing{0, 0, 0, true})
	v.stop()
	require.False(t, v.done())
	v.settle(1)
	require.Equal(t, []updating{{1, []int{0}, 1}}, v.updates)
	require.True(t, v.done())
	v.push(t, pushing{2, 1, 0, false})
	require.Equal(t, 1, v.stale.Unused)

	v = newVirtual(Policy{}, 1, 0)
	v.push(t, pushing{0, 0, 0, true})
	v.stop()
	require.True(t, v.done())
	require.Equal(t, 1, v.version)
}

// A worker that leaves is not waited for.
func TestArbiterLeave(t *testing.T) {
	v := newVirtual(Policy{Quorum: 3}, 3, 0)
	v.push(t, pushing{0, 0, 0, true})
	v.push(t, pushing{1, 1, 0, true})
	require.Empty(t, v.updates)
	v.leave(2)
	v.settle(2)
	require.Equal(t, []updating{{2, []int{0, 1}, 1}}, v.updates)
}

func TestArbiterRefuses(t *testing.T) {
	v := newVirtual(Policy{Quorum: 2}, 2, 0)
	v.push(t, pushing{0, 0, 0, true})
	v.leave(1)
	for want, g := range map[string]gradient{
		"worker 0 sends a gradient of 1 rows for version 1": {worker: 0, version: 1, rows: 1},
		"for version -1":    {worker: 0, version: -1},
		"of -1 rows":        {worker: 0, rows: -1},
		"before the answer": {worker: 0},
		"worker 1 sends a gradient before the answer to the last, or after its end": {worker: 1},
	} {
		_, err := v.arbiter.push(g, v.begin)
		require.ErrorContains(t, err, want)
	}
}

// Whatever comes, each gradient is applied once or discarded, updates have as many gradients
// as the policy says, and none is staler than allowed.
func TestArbiterProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		p := Policy{
			Quorum: rapid.IntRange(0, workers+1).Draw(t, "quorum"), Timeout: time.Duration(rapid.IntRange(0, 3).Draw(t, "timeout")),
			Bounded: rapid.Bool().Draw(t, "bounded"), MaxStaleness: rapid.IntRange(0, 3).Draw(t, "K"), Damp: rapid.Bool().Draw(t, "damp"),
		}
		require.NoError(t, p.Check())
		limit := rapid.IntRange(0, 20).Draw(t, "limit")
		v := newVirtual(p, workers, limit)
		waiting, versions := make([]bool, workers), make([]int, workers)
		pushes, applied, now := 0, 0, time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "pushes") {
			now += time.Duration(rapid.IntRange(0, 2).Draw(t, "wait"))
			v.until(now)
			w := rapid.IntRange(0, workers-1).Draw(t, "worker")
			for _, u := range v.updates[applied:] {
				for _, i := range u.workers {
					waiting[i], versions[i] = false, v.version
				}
			}
			applied = len(v.updates)
			if waiting[w] {
				continue
			}
			pushes++
			used, err := v.arbiter.push(gradient{worker: w, version: versions[w], rows: 1}, v.begin.Add(now))
			require.NoError(t, err)
			if waiting[w] = used; !used {
				require.True(t, v.done() || p.Bounded && !p.Damp && v.version-versions[w] > p.MaxStaleness)
				versions[w] = v.version
			}
			v.settle(now)
		}
		most, made := 0, 0
		for _, u := range v.updates {
			made += len(u.workers)
			require.NotEmpty(t, u.workers)
			require.True(t, p.Timeout > 0 || len(u.workers) == min(p.quorum(), workers), "%+v", u)
			require.Greater(t, u.factor, float32(0))
			require.LessOrEqual(t, u.factor, float32(1))
			most = max(most, len(u.workers))
		}
		require.LessOrEqual(t, most, workers)
		require.Equal(t, pushes, v.stale.Total()+len(v.next))
		require.Equal(t, made, v.stale.Applied+v.stale.Damped)
		require.Equal(t, made, v.rows)
		if limit > 0 {
			require.LessOrEqual(t, v.version, limit)
		}
	})
}

func TestPolicy(t *testing.T) {
	for want, p := range map[string]Policy{
		"ps-async": {},
		"ps-sync, updates of all gradients, or of fewer after 200ms":                   {Name: "ps-sync", Quorum: Everyone, Timeout: 200 * time.Millisecond},
		"ps-async, updates of 3 gradients, staler than 2 damped":                       {Quorum: 3, Bounded: true, MaxStaleness: 2, Damp: true},
		"ps-sync, updates of 2 gradients, or of fewer after 1s, staler than 0 dropped": {Name: "ps-sync", Quorum: 2, Timeout: time.Second, Bounded: true},
	} {
		require.Equal(t, want, p.String())
		require.NoError(t, p.Check())
	}
	require.ErrorContains(t, Policy{Quorum: -1}.Check(), "quorum must be at least 1, not -1")
	require.ErrorContains(t, Policy{Timeout: -1}.Check(), "must be positive, not -1ns")
	require.ErrorContains(t, Policy{MaxStaleness: -2}.Check(), "must be at least 0, not -2")
}

// Three servers may each wait for the gradient of a worker that waits for another server.
func TestPolicyOfServers(t *testing.T) {
	for _, c := range []struct {
		p                Policy
		workers, servers int
		refused          bool
	}{
		{Policy{Quorum: 2}, 3, 3, true},
		{Policy{Quorum: 2, Bounded: true, MaxStaleness: 1}, 3, 3, true},
		{Policy{Quorum: 2, Bounded: true, Damp: true}, 3, 3, true},
		{Policy{Quorum: 2}, 3, 2, false},
		{Policy{Quorum: 3}, 3, 3, false},
		{Policy{}, 3, 3, false},
		{Policy{Quorum: 2, Timeout: 1}, 3, 3, false},
		{Policy{Quorum: 2, Bounded: true}, 3, 3, false},
	} {
		err := c.p.CheckServers(c.workers, c.servers)
		require.Equal(t, c.refused, err != nil, "%+v", c)
	}
	errs := asyncTogether(t, 3, Policy{Quorum: 2}, func(ctx context.Context, s *asyncSeat) error {
		_, err := s.start(ctx)
		return err
	})
	require.ErrorContains(t, errs[1], "with a quorum of 2 of 3 workers there must be at most 2 servers, not 3")
}

func TestStaleness(t *testing.T) {
	s := Staleness{Applied: 5, Damped: 1, Dropped: 2, Unused: 2, Histogram: []int{4, 2, 1, 1}}
	require.Equal(t, 10, s.Total())
	require.InDelta(t, 30, s.Late(), 1e-9)
	require.InDelta(t, 40, s.Discarded(), 1e-9)
	require.InDelta(t, 7./8, s.Mean(), 1e-9)
	require.Zero(t, Staleness{}.Late())
	require.Zero(t, Staleness{}.Mean())
	var n Staleness
	n.note(staleBins + 7)
	require.Equal(t, 1, n.Histogram[staleBins-1])
}
