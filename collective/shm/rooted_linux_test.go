package shm_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// In a small call with a root, ranks that only give data return before the others have called.
func TestGiversDoNotWait(t *testing.T) {
	gs := groups(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for root := range 3 {
		var others []int
		for r := range 3 {
			if r != root {
				others = append(others, r)
			}
		}
		three := func() []int64 { return make([]int64, 3) }
		one := func(rank int) collective.Vector { return collective.Of([]int64{int64(10 + rank)}) }
		sent := []int64{3, 4, 5}

		require.NoError(t, collective.Broadcast(ctx, gs[root], sent, root))
		for _, r := range others {
			got := three()
			require.NoError(t, collective.Broadcast(ctx, gs[r], got, root))
			assert.Equal(t, sent, got)
		}
		for _, r := range append([]int{root}, others...) {
			got := []int64{0}
			require.NoError(t, gs[r].Scatter(ctx, collective.Of(got), collective.Of(sent), root))
			assert.Equal(t, sent[r], got[0])
		}
		for _, r := range append(others, root) {
			got := three()
			require.NoError(t, gs[r].Gather(ctx, collective.Of(got), one(r), root))
			if r == root {
				assert.Equal(t, []int64{10, 11, 12}, got)
			}
		}
		for _, r := range append(others, root) {
			got := []int64{0}
			require.NoError(t, gs[r].Reduce(ctx, collective.Of(got), one(r), collective.Sum, root))
			if r == root {
				assert.Equal(t, int64(33), got[0])
			}
		}
	}
}

// A root that makes many calls does not overwrite what the others have yet to read.
func TestGiversWaitForTheCallBefore(t *testing.T) {
	began := make(chan struct{})
	collectivetest.Run(t, groups(t, 3), func(ctx context.Context, g *collective.Group) {
		if g.Rank() > 0 {
			select {
			case <-began:
			case <-ctx.Done():
			}
		}
		for i := range 300 {
			v := []int64{-1, -1}
			if g.Rank() == 0 {
				v = []int64{int64(i), int64(-i)}
			}
			if !assert.NoError(t, collective.Broadcast(ctx, g, v, 0)) {
				return
			}
			if i == 0 && g.Rank() == 0 {
				close(began)
			}
			assert.Equal(t, []int64{int64(i), int64(-i)}, v)
		}
	})
}

// A rank that has left a call before its mistake was found gets the error in its next one, even
// if messages carry that out.
func TestTwoRoots(t *testing.T) {
	for name, next := range map[string]func(context.Context, *collective.Group) error{
		"barrier": func(ctx context.Context, g *collective.Group) error { return g.Barrier(ctx) },
		"messages": func(ctx context.Context, g *collective.Group) error {
			return g.ReduceScatterV(ctx, collective.Of([]int64{0}), collective.Of([]int64{1, 2}), []int{1, 1}, collective.Sum)
		},
	} {
		t.Run(name, func(t *testing.T) {
			collectivetest.Run(t, groups(t, 2), func(ctx context.Context, g *collective.Group) {
				assert.NoError(t, collective.Broadcast(ctx, g, []int64{1}, g.Rank()))
				err := next(ctx, g)
				assert.ErrorIs(t, err, collective.ErrMismatch)
				assert.ErrorContains(t, err, "rank 0 called Broadcast(int64[1], root 0) #1")
				assert.ErrorContains(t, err, "rank 1 called Broadcast(int64[1], root 1) #1")
			})
		})
	}
}

// A root that leaves after its call has given the others what they need.
func TestRootLeaves(t *testing.T) {
	gs := groups(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(t, collective.Broadcast(ctx, gs[1], []int64{5}, 1))
	require.NoError(t, gs[1].Close())
	for _, r := range []int{0, 2} {
		got := []int64{0}
		require.NoError(t, collective.Broadcast(ctx, gs[r], got, 1), "rank %d", r)
		assert.Equal(t, int64(5), got[0])
	}
	var rank *collective.RankError
	require.ErrorAs(t, gs[0].Barrier(ctx), &rank)
	assert.Equal(t, 1, rank.Rank)
	assert.ErrorIs(t, rank, collective.ErrLeft)
}
