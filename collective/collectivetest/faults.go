package collectivetest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective"
)

// testMismatch lets one rank make another call than the rest: every rank gets
// an error that prints both calls.
func testMismatch(t *testing.T, make_ Maker) {
	for name, odd := range map[string]func(context.Context, *collective.Group) error{
		"length": func(ctx context.Context, g *collective.Group) error {
			return collective.AllReduce(ctx, g, make([]float32, 11), collective.Sum)
		},
		"type": func(ctx context.Context, g *collective.Group) error {
			return collective.AllReduce(ctx, g, make([]float64, 10), collective.Sum)
		},
		"reduction": func(ctx context.Context, g *collective.Group) error {
			return collective.AllReduce(ctx, g, make([]float32, 10), collective.Max)
		},
		"operation": func(ctx context.Context, g *collective.Group) error {
			return collective.AllGather(ctx, g, make([]float32, 10*g.Size()), make([]float32, 10))
		},
		"place": func(ctx context.Context, g *collective.Group) error {
			return g.AllReduce(ctx, collective.Of(make([]float32, 10)).At(1), collective.Sum)
		},
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, make_(t, 3), func(ctx context.Context, g *collective.Group) {
				var err error
				if g.Rank() == 1 {
					err = odd(ctx, g)
				} else {
					err = collective.AllReduce(ctx, g, make([]float32, 10), collective.Sum)
				}
				assert.ErrorIs(t, err, collective.ErrMismatch, "rank %d", g.Rank())
				assert.ErrorContains(t, err, "AllReduce(float32[10], sum)")
				assert.ErrorContains(t, err, "rank 1 called")
				assert.Equal(t, err, g.Barrier(ctx), "a broken group stays broken")
			})
		})
	}
}

// testConcurrent calls from two goroutines while the other rank does not call:
// whichever comes second is refused, the other's call is not disturbed.
func testConcurrent(t *testing.T, make_ Maker) {
	groups := make_(t, 2)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- groups[0].Barrier(ctx) }()
	}
	assert.ErrorIs(t, <-errs, collective.ErrConcurrent)
	assert.NoError(t, groups[1].Barrier(ctx))
	assert.NoError(t, <-errs)
}

// testCancelled cancels the call of one rank: all ranks name it.
func testCancelled(t *testing.T, make Maker) {
	why := errors.New("the user pressed a key")
	Run(t, make(t, 3), func(ctx context.Context, g *collective.Group) {
		assert.NoError(t, g.Barrier(ctx))
		var err error
		if g.Rank() == 1 {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(why)
			err = g.Barrier(ctx)
		} else {
			err = collective.AllReduce(ctx, g, []float32{1}, collective.Sum)
		}
		var lost *collective.RankError
		if assert.ErrorAs(t, err, &lost, "rank %d", g.Rank()) && !errors.Is(err, collective.ErrMismatch) {
			assert.Equal(t, 1, lost.Rank)
			assert.Equal(t, "cancelled", lost.Phase)
			assert.ErrorContains(t, err, why.Error())
		}
	})
}

// testLeaves closes one rank's group while the others still call.
func testLeaves(t *testing.T, make Maker) {
	groups := make(t, 4)
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		assert.NoError(t, g.Barrier(ctx))
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

// testAborts breaks the group from one rank that has a reason of its own.
func testAborts(t *testing.T, make Maker) {
	Run(t, make(t, 3), func(ctx context.Context, g *collective.Group) {
		assert.NoError(t, g.Barrier(ctx))
		if g.Rank() == 0 {
			g.Abort(errors.New("the disk is on fire"))
		}
		err := g.Barrier(ctx)
		var told *collective.RankError
		if assert.ErrorAs(t, err, &told, "rank %d", g.Rank()) {
			assert.Equal(t, 0, told.Rank)
			assert.ErrorContains(t, err, "the disk is on fire")
		}
	})
}
