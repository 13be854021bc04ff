package shm

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// long returns a call that lend carries out.
func (p testRank) long(k collective.Kind, dst, src []int64) *collective.Operation {
	return &collective.Operation{
		Header: collective.Header{Job: 7, Epoch: 1, Seq: p.calls + 1, Call: collective.Call{Kind: k, DType: collective.Int64, Op: collective.Sum, Count: uint64(len(src))}},
		Dst:    collective.Of(dst), Src: collective.Of(src),
	}
}

// lendAll makes a call on all ranks, and returns whether all of them, or none, were done.
func lendAll(t *testing.T, ps []testRank, call func(rank int) (o *collective.Operation, most int)) (done bool) {
	all := make([]bool, len(ps))
	var ranks sync.WaitGroup
	for r, p := range ps {
		o, most := call(r)
		ranks.Go(func() {
			var err error
			all[r], err = p.lending.lend(o, most)
			assert.NoError(t, err)
		})
	}
	ranks.Wait()
	for r := range all {
		require.Equal(t, all[0], all[r], "rank %d", r)
	}
	return all[0]
}

// A call is carried out without messages if the memory of all ranks that give data allows it.
func TestLendingNeedsMemoryOfGivers(t *testing.T) {
	for _, c := range []struct {
		name     string
		size, n  int
		kind     collective.Kind
		inArenas func(rank int) bool
		done     bool
	}{
		{"in arenas", 3, 5000, collective.KindAllGather, func(int) bool { return true }, true},
		{"one in ordinary memory", 3, 5000, collective.KindAllGather, func(rank int) bool { return rank != 1 }, false},
		{"the root in an arena", 3, 5000, collective.KindBroadcast, func(rank int) bool { return rank == 0 }, true},
		{"the root in ordinary memory", 3, 5000, collective.KindBroadcast, func(rank int) bool { return rank != 0 }, false},
		{"by read", 2, readLeast / 8, collective.KindAllGather, func(int) bool { return false }, true},
		{"one by read", 2, readLeast / 8, collective.KindAllGather, func(rank int) bool { return rank == 1 }, true},
		{"too short to read", 2, readLeast/8 - 1, collective.KindAllGather, func(int) bool { return false }, false},
		{"too many to read", 3, readLeast / 8, collective.KindAllGather, func(int) bool { return false }, false},
		{"sums of what would be read", 2, readLeast / 8, collective.KindReduceScatter, func(int) bool { return false }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ps := newHost(t, c.size)
			vectors := make([][]int64, c.size)
			for r, p := range ps {
				vectors[r] = p.vector(t, c.n, c.inArenas(r))
			}
			require.Equal(t, c.done, lendAll(t, ps, func(rank int) (*collective.Operation, int) {
				dst := make([]int64, c.size*c.n)
				switch c.kind {
				case collective.KindBroadcast:
					dst = vectors[rank]
				case collective.KindReduceScatter:
					dst = dst[:c.n/c.size]
				}
				return ps[rank].long(c.kind, dst, vectors[rank]), 8 * c.n
			}))
		})
	}
}

// After a call that messages must carry out, ranks do not wait for each other again until some
// more have been made.
func TestLendingPauses(t *testing.T) {
	ps := newHost(t, 3)
	call := func(rank int) (*collective.Operation, int) {
		return ps[rank].long(collective.KindAllGather, make([]int64, 3*5000), make([]int64, 5000)), 8 * 5000
	}
	for range 2 {
		require.False(t, lendAll(t, ps, call))
		for range lendPause {
			for r, p := range ps { // one after the other: none waits
				done, err := p.lending.lend(call(r))
				require.NoError(t, err)
				require.False(t, done)
			}
		}
	}
}

// A call fails if it has read the memory of a rank whose own call had failed, even if all flags
// say that the call is complete.
func TestLentByAFailedCall(t *testing.T) {
	for name, inArenas := range map[string]bool{"in place": true, "by read": false} {
		t.Run(name, func(t *testing.T) {
			ps := newHost(t, 2)
			n := readLeast / 8
			var vectors [][]int64
			for _, p := range ps {
				vectors = append(vectors, p.vector(t, n, inArenas))
			}
			call := func(rank int) (o *collective.Operation, most int) {
				return ps[rank].long(collective.KindAllGather, make([]int64, 2*n), vectors[rank]), 8 * n
			}
			require.True(t, lendAll(t, ps, call)) // later calls need no other process to find memory
			var other sync.WaitGroup
			other.Go(func() {
				_, err := ps[1].lending.lend(call(1))
				assert.ErrorIs(t, err, assert.AnError)
			})
			mine, _ := call(0)
			r, err := ps[0].ready(mine)
			require.NoError(t, err)
			r.small = false
			require.NoError(t, r.exchange())
			require.ErrorIs(t, ps[0].withdraw(assert.AnError), assert.AnError)
			ps[0].raiseStep(fetched, 2)
			ps[0].wakeSleepers()
			ps[1].Abort(&collective.RankError{Rank: 0, Err: assert.AnError})
			other.Wait()
		})
	}
}
