package collectivetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// lateness is the minimum by which rank 2 is late.
const lateness = 50 * time.Millisecond

// TestFlight makes one of three ranks late. The flight records of the others must
// say so, while they wait and afterwards.
func TestFlight(t *testing.T, make_ Maker) {
	for name, call := range map[string]func(context.Context, *collective.Group) error{
		"AllReduce": func(ctx context.Context, g *collective.Group) error {
			return collective.AllReduce(ctx, g, make([]float32, 10), collective.Sum)
		},
		"large AllReduce": func(ctx context.Context, g *collective.Group) error {
			return collective.AllReduce(ctx, g, make([]float32, 2_000_000), collective.Sum)
		},
		"AllGather": func(ctx context.Context, g *collective.Group) error {
			return collective.AllGather(ctx, g, make([]float32, 30), make([]float32, 10))
		},
		"Broadcast of the last rank": func(ctx context.Context, g *collective.Group) error {
			return collective.Broadcast(ctx, g, make([]float32, 10), 2)
		},
	} {
		t.Run(name, func(t *testing.T) { testLate(t, make_(t, 3), call) })
	}
}

// testLate makes one call for which rank 2 is late.
func testLate(t *testing.T, groups []*collective.Group, call func(context.Context, *collective.Group) error) {
	Run(t, groups, func(ctx context.Context, g *collective.Group) { assert.NoError(t, call(ctx, g)) })
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		if g.Rank() == 2 {
			if !assert.NoError(t, awaited(ctx, groups[:2])) {
				return
			}
		}
		assert.NoError(t, call(ctx, g))
	})
	var worst time.Duration
	for _, g := range groups[:2] {
		f := g.Flight()
		require.Len(t, f.Calls, 2)
		require.Nil(t, f.InProgress())
		c := f.Calls[1]
		require.GreaterOrEqual(t, c.Took, lateness)
		for _, w := range c.Waits {
			require.NotEqual(t, g.Rank(), w.Rank)
			require.LessOrEqual(t, w.Late+w.Slow, c.Took)
			if w.Rank == 2 {
				worst = max(worst, w.Late)
			}
		}
	}
	require.GreaterOrEqual(t, worst, lateness, "no rank has waited for rank 2 to call")
}

// awaited returns once every group has waited for another rank for lateness, and
// one of them for rank 2.
func awaited(ctx context.Context, groups []*collective.Group) error {
	for {
		long, named := 0, false
		for _, g := range groups {
			f := g.Flight()
			if f.InProgress() != nil && f.Waiting != nil && f.Waiting.For >= lateness {
				long++
				named = named || f.Waiting.Rank == 2 && f.Waiting.Cause == collective.LateToCall
			}
		}
		if long == len(groups) && named {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}
