package collective

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// If a rank fails that is not in a group of Sub, every later call of that group names it,
// with its number in the View. A failed rank in the group has its number there.
func TestSubNamesFailedRanks(t *testing.T) {
	full := errors.New("the disk is full")
	for name, c := range map[string]struct {
		colors [][]int // of Sub, and of Sub of its result; by rank of the View
		whole  int     // the culprit in the View
		rank   int     // and in the group of rank 0, or -1
	}{
		"outside":               {[][]int{{0, 0, 1, 1}}, 3, -1},
		"inside":                {[][]int{{0, 1, 1, 0}}, 3, 1},
		"outside the innermost": {[][]int{{0, 1, 0, 0}, {0, 0, 0, 1}}, 3, -1},
		"outside both":          {[][]int{{0, 1, 0, 0}, {0, 0, 0, 1}}, 1, -1},
		"inside both":           {[][]int{{0, 1, 0, 0}, {0, 0, 1, 0}}, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			views, transports := Local(4)
			var ready, done sync.WaitGroup
			ready.Add(len(views))
			failed := make(chan struct{})
			for r, v := range views {
				done.Go(func() {
					all := NewGroup(v, OverTransport(v, transports[r]), Options{})
					defer all.Close()
					g := all
					for _, colors := range c.colors {
						sub, err := g.Sub(ctx, colors[r], r)
						if !assert.NoError(t, err) {
							break
						}
						defer sub.Close()
						if g = sub; colors[r] != 0 {
							break // the other colors have no part in the next Sub
						}
					}
					ready.Done()
					if r == c.whole {
						ready.Wait()
						all.Abort(full)
						close(failed)
						var own *RankError
						if assert.ErrorAs(t, g.Barrier(ctx), &own) {
							assert.Equal(t, g.Rank(), own.Rank)
							assert.Equal(t, views[0].Name(c.whole), own.Node)
						}
						return
					}
					<-failed
					if r > 0 {
						return
					}
					var lost *RankError
					for _, err := range []error{g.Lost(), g.Barrier(ctx), g.Barrier(ctx)} {
						if !assert.ErrorAs(t, err, &lost) {
							return
						}
						assert.Equal(t, c.rank, lost.Rank)
						assert.Equal(t, views[0].Name(c.whole), lost.Node)
						assert.ErrorContains(t, err, full.Error())
						if c.rank < 0 {
							assert.Equal(t, c.whole, lost.Whole)
							assert.ErrorContains(t, err, fmt.Sprintf("rank %d of the whole view (%s) failed", c.whole, lost.Node))
						}
					}
				})
			}
			done.Wait()
		})
	}
}

// The id of a Sub separates its messages from those of the whole View, of its parent's other Subs,
// and of Subs of other groups.
func TestSubIDs(t *testing.T) {
	seen := map[uint32]bool{0: true}
	for id := range uint32(8) {
		for seq := range uint64(8) {
			for color := range 8 {
				g := &Group{id: id}
				g.seq = seq
				sub := g.subID(color)
				require.False(t, seen[sub], "id %d, call %d, color %d", id, seq, color)
				require.Equal(t, sub, g.subID(color), "the same on all ranks")
				require.Equal(t, uint32(1), sub&1, "never 0")
				seen[sub] = true
			}
		}
	}
}

// A lender is a transport whose memory others may use until it is freed.
type lender struct {
	Transport
	freed bool
}

func (l *lender) Abilities() Abilities { return Abilities{Free: func() { l.freed = true }} }
func (l *lender) Close() error         { return nil }

// Memory that a Sub may still use is not freed with the group that it was made from.
func TestSubKeepsMemory(t *testing.T) {
	for _, divided := range []bool{false, true} {
		l := new(lender)
		v := View{Members: make([]Member, 1)}
		e := OverTransport(v, l)
		if divided {
			sub, err := e.Sub(1, v, []int{0})
			require.NoError(t, err)
			defer sub.Close()
		}
		require.NoError(t, e.Close())
		require.Equal(t, !divided, l.freed)
	}
}

// What a parent knows of shared memory is not the cost of a Sub's messages.
func TestSubInheritsLinks(t *testing.T) {
	near, far, usual := schedule.Cost{Latency: 1}, schedule.Cost{Latency: 2}, schedule.Cost{Latency: 3}
	for _, shared := range []bool{false, true} {
		e := &HostEngine{}
		e.situation.Near = usual
		e.inheritLinks(&schedule.Situation{Shared: shared, Links: schedule.Links{Near: near, Far: far, Calls: make([]schedule.Sample, 2)}})
		want := near
		if shared {
			want = usual
		}
		require.Equal(t, schedule.Links{Near: want, Far: far}, e.situation.Links)
	}
}

// A group of Sub that fails because of a rank outside tells the other ranks which it was.
func TestSubAbortsWithRanksOfTheView(t *testing.T) {
	views, transports := Local(3)
	bottom := OverTransport(views[2], transports[2])
	sub := &subTransport{t: transports[2], outer: bottom, ranks: []int{1, 2}}
	why := &RankError{Rank: -1, Whole: 0, Phase: "failed", Err: ErrLeft}
	sub.Abort(why)
	var lost *RankError
	require.ErrorAs(t, AbilitiesOf(transports[1]).Err(), &lost)
	require.Equal(t, 0, lost.Rank)
	require.Equal(t, -1, why.Rank, "the caller's error stays as it was")
	require.NoError(t, errors.Join(bottom.Close(), transports[0].Close(), transports[1].Close()))
}

// An error of a group of Sub numbers all ranks as the group does, or says that it does not.
func TestSubNumbersRanksInOneWay(t *testing.T) {
	views, transports := Local(5)
	bottom := OverTransport(views[1], transports[1])
	sub := func(e Engine, ranks ...int) *HostEngine {
		v := View{Self: -1}
		for i, r := range ranks {
			v.Members = append(v.Members, e.(*HostEngine).view.Members[r])
			if r == e.(*HostEngine).rank {
				v.Self = i
			}
		}
		s, err := e.Sub(1, v, ranks)
		require.NoError(t, err)
		return s.(*HostEngine)
	}
	outer := sub(bottom, 4, 1, 3) // 0, 1 and 2 are its numbers of these
	inner := sub(outer, 1, 0)
	differ := func(self, peer int) error {
		return &MismatchError{Self: self, Peer: peer,
			Mine: Header{Seq: 7, Call: Call{Kind: KindBarrier}}, Theirs: Header{Seq: 8, Call: Call{Kind: KindBarrier}}}
	}
	reported := func(by int, err error) error { return &ReportedError{By: by, Err: err} }
	arrived, err := GetAbort(PutAbort(&RankError{Rank: 4, Err: differ(4, 1)}, 4), 5)
	require.NoError(t, err)
	const same = ": all ranks must make the same calls in the same order"
	for _, c := range []struct {
		err          error
		outer, inner string
	}{
		{reported(3, ErrLost), ErrLost.Error() + " (reported by rank 2)", ErrLost.Error() + " (reported by rank 3 of the whole view)"},
		{reported(0, ErrLost), ErrLost.Error() + " (reported by rank 0 of the whole view)", ErrLost.Error() + " (reported by rank 0 of the whole view)"},
		{differ(1, 4), "rank 0 called Barrier() #8, rank 1 called Barrier() #7" + same, "rank 1 called Barrier() #8, rank 0 called Barrier() #7" + same},
		{
			reported(4, differ(4, 3)), "rank 2 called Barrier() #8, rank 0 called Barrier() #7" + same + " (reported by rank 0)",
			"rank 3 called Barrier() #8, rank 4 called Barrier() #7" + same + " (ranks of the whole view) (reported by rank 1)",
		},
		{
			arrived.Err, "rank 1 called Barrier() #8, rank 4 called Barrier() #7" + same + " (ranks of the whole view) (reported by rank 0)",
			"rank 1 called Barrier() #8, rank 4 called Barrier() #7" + same + " (ranks of the whole view) (reported by rank 1)",
		},
	} {
		atOuter := outer.t.(*subTransport).translate(&RankError{Rank: 4, Err: c.err})
		require.EqualError(t, errors.Unwrap(atOuter), c.outer)
		atInner := inner.t.(*subTransport).translate(atOuter)
		require.EqualError(t, errors.Unwrap(atInner), c.inner)
		require.Equal(t, errors.Is(c.err, ErrMismatch), errors.Is(atInner, ErrMismatch))
		var again *RankError
		require.ErrorAs(t, atInner, &again)
		_, err := GetAbort(PutAbort(again, 0), 5)
		require.NoError(t, err)
	}

	outer.Abort(&RankError{Rank: 2, Phase: "mismatch", Err: differ(1, 2)}) // of 1 and 3 of the View
	require.ErrorContains(t, AbilitiesOf(transports[0]).Err(), "rank 3 called Barrier() #8, rank 1 called Barrier() #7")
	require.NoError(t, errors.Join(inner.Close(), outer.Close(), bottom.Close()))
}

// Calls of a group and of its Subs exclude each other. The call that comes too early has no
// effect.
func TestSubExcludesOtherCalls(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	views, transports := Local(2)
	var family [2][]*Group // by rank: the group, its Sub, and a Sub of that
	each := func(call func(r int)) {
		var all sync.WaitGroup
		for r := range views {
			all.Go(func() { call(r) })
		}
		all.Wait()
	}
	each(func(r int) {
		g := NewGroup(views[r], OverTransport(views[r], transports[r]), Options{})
		family[r] = append(family[r], g)
		for range 2 {
			sub, err := g.Sub(ctx, 0, r)
			if !assert.NoError(t, err) {
				return
			}
			family[r], g = append(family[r], sub), sub
		}
	})
	for _, busy := range family[0] {
		_, alone := busy.watchdog.begin(ctx)
		require.True(t, alone)
		for _, g := range family[0] {
			require.ErrorIs(t, g.Barrier(ctx), ErrConcurrent)
		}
		_, err := family[0][0].Messages(ctx)
		require.ErrorIs(t, err, ErrConcurrent)
		busy.watchdog.finish()
	}
	each(func(r int) {
		for _, g := range family[r] {
			assert.NoError(t, g.Barrier(ctx))
		}
		for _, g := range slices.Backward(family[r]) {
			assert.NoError(t, g.Close())
		}
	})
}
