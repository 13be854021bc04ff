package collectivetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective"
)

// testMismatch makes one rank call something else than the others. Every rank must
// get an error that prints both calls.
func testMismatch(t *testing.T, make_ Maker) {
	const n = 300_000 // more than fits a socket that is not read
	reduce := func(n int) func(context.Context, *collective.Group) error {
		return func(ctx context.Context, g *collective.Group) error {
			return collective.AllReduce(ctx, g, make([]float32, n), collective.Sum)
		}
	}
	broadcast := func(n, root int) func(context.Context, *collective.Group) error {
		return func(ctx context.Context, g *collective.Group) error {
			return collective.Broadcast(ctx, g, make([]float32, n), root)
		}
	}
	pieces := func(first, last int) func(context.Context, *collective.Group) error {
		return func(ctx context.Context, g *collective.Group) error {
			counts := make([]int, g.Size())
			for r := range counts {
				counts[r] = 3
			}
			counts[0], counts[g.Size()-1] = first, last
			return g.ReduceScatterV(ctx, collective.Of(make([]float32, counts[g.Rank()])), collective.Of(make([]float32, 3*g.Size())), counts, collective.Sum)
		}
	}
	barrier := func(ctx context.Context, g *collective.Group) error { return g.Barrier(ctx) }
	for _, c := range []struct {
		name      string
		most, odd func(context.Context, *collective.Group) error
		says      string // the odd call, as errors print it
	}{
		{"length", reduce(10), reduce(11), "AllReduce(float32[11], sum)"},
		{"method", reduce(10), reduce(n), "AllReduce(float32[300000], sum)"},
		{"other method", reduce(n), reduce(10), "AllReduce(float32[10], sum)"},
		{"type", reduce(10), func(ctx context.Context, g *collective.Group) error {
			return collective.AllReduce(ctx, g, make([]float64, 10), collective.Sum)
		}, "AllReduce(float64[10], sum)"},
		{"reduction", reduce(10), func(ctx context.Context, g *collective.Group) error {
			return collective.AllReduce(ctx, g, make([]float32, 10), collective.Max)
		}, "AllReduce(float32[10], max)"},
		{"gather", reduce(10), func(ctx context.Context, g *collective.Group) error {
			return collective.AllGather(ctx, g, make([]float32, 10*g.Size()), make([]float32, 10))
		}, "AllGather(float32[10])"},
		{"barrier", reduce(n), barrier, "Barrier()"},
		{"broadcast", barrier, broadcast(10, 1), "Broadcast(float32[10], root 1)"},
		{"large broadcast", barrier, broadcast(n, 1), "Broadcast(float32[300000], root 1)"},
		{"root", broadcast(10, 0), broadcast(10, 1), "Broadcast(float32[10], root 1)"},
		{"root of a large one", broadcast(n, 0), broadcast(n, 1), "Broadcast(float32[300000], root 1)"},
		{"counts", pieces(3, 3), pieces(4, 2), "ReduceScatter("},
		{"root of a gather", gatherTo(10, 0), gatherTo(10, 1), "Gather(float32[10], root 1)"},
		{"root of a large gather", gatherTo(n, 0), gatherTo(n, 1), "Gather(float32[300000], root 1)"},
		{"root of a scatter", scatterFrom(10, 0), scatterFrom(10, 1), "Scatter(float32[10], root 1)"},
		{"root of a large scatter", scatterFrom(n, 0), scatterFrom(n, 1), "Scatter(float32[300000], root 1)"},
		{"root of a reduce", reduceTo(10, 0), reduceTo(10, 1), "Reduce(float32[10], sum, root 1)"},
		{"root of a large reduce", reduceTo(n, 0), reduceTo(n, 1), "Reduce(float32[300000], sum, root 1)"},
		{"root of an empty reduce", reduceTo(0, 0), reduceTo(0, 1), "Reduce(float32[0], sum, root 1)"},
		{"place", reduce(10), func(ctx context.Context, g *collective.Group) error {
			return g.AllReduce(ctx, collective.Of(make([]float32, 10)).At(1), collective.Sum)
		}, "AllReduce(float32[10], sum, at 1)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{2, 3, 5} {
				Run(t, make_(t, size), func(ctx context.Context, g *collective.Group) {
					call := c.most
					if g.Rank() == 1 {
						call = c.odd
					}
					err := call(ctx, g)
					if err == nil && strings.Contains(c.says, "root") {
						err = g.Barrier(ctx) // a rank may be done with such a call before its mistake is found
					}
					assert.ErrorIs(t, err, collective.ErrMismatch, "rank %d of %d", g.Rank(), size)
					assert.ErrorContains(t, err, "rank 1 called "+c.says)
					assert.Equal(t, err, g.Barrier(ctx), "a broken group stays broken")
				})
			}
		})
	}
}

// gatherTo, scatterFrom and reduceTo return calls in which each rank gives, or gets, n elements.

func gatherTo(n, root int) func(context.Context, *collective.Group) error {
	return func(ctx context.Context, g *collective.Group) error {
		return g.Gather(ctx, collective.Of(make([]float32, n*g.Size())), collective.Of(make([]float32, n)), root)
	}
}

func scatterFrom(n, root int) func(context.Context, *collective.Group) error {
	return func(ctx context.Context, g *collective.Group) error {
		return g.Scatter(ctx, collective.Of(make([]float32, n)), collective.Of(make([]float32, n*g.Size())), root)
	}
}

func reduceTo(n, root int) func(context.Context, *collective.Group) error {
	return func(ctx context.Context, g *collective.Group) error {
		return g.Reduce(ctx, collective.Of(make([]float32, n)), collective.Of(make([]float32, n)), collective.Sum, root)
	}
}

// testConcurrent calls from two goroutines before the other rank calls. The second
// must be refused without disturbing the first.
func testConcurrent(t *testing.T, make_ Maker) {
	groups := make_(t, 2)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- groups[0].Barrier(ctx) }()
	}
	assert.ErrorIs(t, <-errs, collective.ErrConcurrent)
	assert.NoError(t, groups[1].Barrier(ctx))
	assert.NoError(t, <-errs)
}

// testCancelled cancels the call of one rank. All ranks must name it.
func testCancelled(t *testing.T, make Maker) {
	why := errors.New("the user pressed a key")
	ready := meeting(3)
	Run(t, make(t, 3), func(ctx context.Context, g *collective.Group) {
		assert.NoError(t, g.Barrier(ctx))
		ready()
		if g.Rank() == 1 {
			cancelled, cancel := context.WithCancelCause(ctx)
			cancel(why)
			ctx = cancelled
		}
		err := g.Barrier(ctx)
		var lost *collective.RankError
		if assert.ErrorAs(t, err, &lost, "rank %d", g.Rank()) {
			assert.Equal(t, 1, lost.Rank)
			assert.Equal(t, "cancelled", lost.Phase)
			assert.ErrorContains(t, err, why.Error())
		}
	})
}

// testLeaves closes one rank's group while the others make calls.
func testLeaves(t *testing.T, make Maker) {
	groups, ready := make(t, 4), meeting(4)
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		assert.NoError(t, g.Barrier(ctx))
		ready()
		if g.Rank() == 2 {
			assert.NoError(t, g.Close())
			assert.ErrorIs(t, g.Barrier(ctx), collective.ErrClosed)
			return
		}
		err := g.Barrier(ctx)
		var left *collective.RankError
		if assert.ErrorAs(t, err, &left, "rank %d", g.Rank()) {
			assert.Equal(t, 2, left.Rank, "%v", err)
			assert.ErrorIs(t, err, collective.ErrLeft)
			assert.Equal(t, groups[0].View().Name(2), left.Node)
			assert.EqualValues(t, 2, left.Seq)
			assert.Equal(t, collective.KindBarrier, left.Op.Kind)
		}
	})
}

// testAborts makes one rank abort the group with an error of its own.
func testAborts(t *testing.T, make Maker) {
	ready := meeting(3)
	Run(t, make(t, 3), func(ctx context.Context, g *collective.Group) {
		assert.NoError(t, g.Barrier(ctx))
		ready()
		if g.Rank() == 0 {
			g.Abort(errors.New("the disk is on fire"))
		}
		err := g.Barrier(ctx)
		var lost *collective.RankError
		if assert.ErrorAs(t, err, &lost, "rank %d", g.Rank()) {
			assert.Equal(t, 0, lost.Rank)
			assert.ErrorContains(t, err, "the disk is on fire")
		}
	})
}

// meeting returns a function that returns when n goroutines have called it. A
// collective Barrier will not do: the first rank to leave it may break the group
// while others are still inside.
func meeting(n int) func() {
	var all sync.WaitGroup
	all.Add(n)
	return func() {
		all.Done()
		all.Wait()
	}
}

// TestLateCaller lets the last of four ranks be late. The others give up before two heartbeats
// have passed, and all of them must name it, not one another. Where they had no time to tell
// that they called, because other programs use the machine, they try again. The transport must
// have Abilities.Behind.
func TestLateCaller(t *testing.T, make_ Maker) {
	const size, late, attempts = 4, 3, 5
	for _, n := range []int{10, 200_000} {
		var named []int
		for range attempts {
			groups := make_(t, size)
			Run(t, groups, func(ctx context.Context, g *collective.Group) { assert.NoError(t, g.Barrier(ctx)) })
			named = make([]int, late)
			Run(t, groups[:late], func(ctx context.Context, g *collective.Group) {
				limited, cancel := context.WithTimeout(ctx, 240*time.Millisecond)
				defer cancel()
				err := collective.AllReduce(limited, g, make([]float32, n), collective.Sum)
				var culprit *collective.RankError
				if assert.ErrorAs(t, err, &culprit) {
					named[g.Rank()] = culprit.Rank
				}
			})
			if slices.Equal(named, []int{late, late, late}) {
				break
			}
		}
		assert.Equal(t, []int{late, late, late}, named, "the ranks that were named, %d elements", n)
	}
}
