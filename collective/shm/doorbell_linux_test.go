package shm

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// A rank that has raised a flag rings the doorbells of ranks that sleep before it
// raises another flag, before it waits for long, and when its call ends. A rank
// that is awake is not disturbed.
func TestRaisedFlagsWakeSleepers(t *testing.T) {
	never := new(uint64)
	for _, c := range []struct {
		name string
		do   func(p testRank)
	}{
		{"raise another", func(p testRank) { p.raise(folded, 1) }},
		{"wait for long", func(p testRank) { assert.ErrorIs(t, p.wait(never, 1, 1, progress), assert.AnError) }},
		{"nudge", func(p testRank) { p.nudge() }},
		{"wakeSleepers", func(p testRank) { p.wakeSleepers() }},
	} {
		for _, sleeps := range []bool{true, false} {
			p := newHost(t, 2)[0]
			p.rounds = 8 // as if every rank had a core
			if sleeps {
				atomic.AddUint32(p.asleep(1), 1)
			}
			p.raise(staged, 1)
			require.Zero(t, atomic.LoadUint32(p.bell(1)), "%s: raise does not look for sleepers", c.name)
			p.Abort(&collective.RankError{Err: assert.AnError}) // the end of the wait
			c.do(p)
			require.Equal(t, sleeps, atomic.LoadUint32(p.bell(1)) != 0, c.name)
		}
	}
}

// With more ranks than cores, each step of a large call wakes sleepers at once.
func TestRaisedFlagsWakeSleepersAtOnce(t *testing.T) {
	p := newHost(t, 2)[0]
	p.rounds = 0
	atomic.AddUint32(p.asleep(1), 1)
	p.raiseStep(staged, 1)
	require.NotZero(t, atomic.LoadUint32(p.bell(1)))
}

// When a call has returned, with or without an error, no sleeper is left to wake.
func TestCallsLeaveNoSleepers(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared cores %t", shared), func(t *testing.T) { leaveNoSleepers(t, shared) })
	}
}

func leaveNoSleepers(t *testing.T, shared bool) {
	ranks := newHost(t, 2)
	for _, p := range ranks {
		p.shared = shared && p.named
	}
	barrier := func(p testRank) *collective.Operation {
		return &collective.Operation{Header: collective.Header{Job: 7, Epoch: 1, Seq: p.calls + 1, Call: collective.Call{Kind: collective.KindBarrier}}}
	}
	for name, call := range map[string]func(p testRank) error{
		"Barrier":   func(p testRank) error { return p.Barrier(barrier(p)) },
		"AllReduce": func(p testRank) error { return p.AllReduce(p.sum(make([]int64, 70_000))) },
		"small":     func(p testRank) error { return p.AllReduce(p.sum(make([]int64, 7))) },
		"Exchange": func(p testRank) error {
			h := collective.Header{Job: 7, Epoch: 1, Seq: p.calls + 1, Len: 80, Call: collective.Call{Kind: collective.KindAllGather, DType: collective.Int64, Count: 10}}
			return p.Exchange(&collective.Operation{Header: h, Src: collective.Of(make([]int64, 10)), Dst: collective.Of(make([]int64, 20))})
		},
	} {
		var all sync.WaitGroup
		for _, p := range ranks {
			all.Go(func() {
				assert.NoError(t, call(p), name)
				assert.False(t, p.wakeDue, name)
			})
		}
		all.Wait()
	}
	p := ranks[0]
	p.rounds = 8 // as if every rank had a core
	p.show(barrier(p))
	require.True(t, p.wakeDue)
	p.Abort(&collective.RankError{Err: assert.AnError})
	atomic.AddUint32(p.asleep(1), 1)
	before := atomic.LoadUint32(p.bell(1))
	require.ErrorIs(t, p.Barrier(barrier(p)), assert.AnError)
	require.False(t, p.wakeDue)
	require.NotEqual(t, before, atomic.LoadUint32(p.bell(1)))
}

// A rank whose transport breaks wakes its own goroutines.
func TestFailureWakesOwnSleepers(t *testing.T) {
	p := newHost(t, 2)[0]
	before := atomic.LoadUint32(p.bell(p.self))
	p.Abort(&collective.RankError{Err: assert.AnError})
	p.done.Wait()
	require.NotEqual(t, before, atomic.LoadUint32(p.bell(p.self)))
}
