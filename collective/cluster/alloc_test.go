package cluster_test

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// Memory of Alloc works in a Group made before it, in Subs, in the Group after a
// broken one, and together with ordinary memory of other ranks. It outlives them all.
func TestAllocOutlivesGroups(t *testing.T) {
	const n, size = 50_001, 3
	nodes := start(t, cluster.Config{Cluster: t.Name(), Node: "a"}, size)
	before, after := make([][]int64, size), make([][]int64, size) // made before and after the Group
	alloc := func(i int) []int64 {
		v, err := nodes[i].Alloc(collective.Int64, n)
		require.NoError(t, err)
		return collective.Elements[int64](v)
	}
	for i := range nodes {
		before[i] = alloc(i)
	}
	gs := groups(t, nodes)
	require.False(t, t.Failed())
	for i := range nodes {
		after[i] = alloc(i)
	}
	reduce := func(ctx context.Context, g *collective.Group, s []int64) {
		for i := range s {
			s[i] = int64(g.Rank() + i)
		}
		assert.NoError(t, collective.AllReduce(ctx, g, s, collective.Sum))
		for i := range s {
			if want := int64(g.Size()*(g.Size()-1)/2 + g.Size()*i); s[i] != want {
				assert.Fail(t, "wrong sum", "rank %d, element %d: %d, not %d", g.Rank(), i, s[i], want)
				return
			}
		}
	}
	places := func(rank int) [][]int64 {
		mixed := [][]int64{before[rank][1:], after[rank][7 : n-1]}[rank%2]
		return [][]int64{before[rank], after[rank], mixed[:n-100], make([]int64, n), before[rank]}
	}
	everywhere := func(ctx context.Context, g *collective.Group) {
		for _, s := range places(g.Rank()) {
			reduce(ctx, g, s)
		}
		if g.Rank() == 0 { // the others give shared memory
			reduce(ctx, g, make([]int64, n))
		} else {
			reduce(ctx, g, after[g.Rank()])
		}
	}
	again := make([]*collective.Group, size)
	var subs sync.WaitGroup
	subs.Add(size)
	collectivetest.Run(t, gs, func(ctx context.Context, g *collective.Group) {
		everywhere(ctx, g)
		rank := g.Rank()
		sub, err := g.Sub(ctx, min(rank, 1), 0)
		if !assert.NoError(t, err) {
			subs.Done()
			return
		}
		reduce(ctx, sub, before[rank])
		assert.NoError(t, sub.Close())
		if subs.Done(); rank == 1 {
			subs.Wait() // an Abort would interrupt them
			g.Abort(assert.AnError)
		}
		assert.Error(t, g.AllReduce(ctx, collective.Of(after[rank]), collective.Sum))
		again[rank], err = nodes[rank].Regroup(ctx, g)
		assert.NoError(t, err)
	})
	require.False(t, t.Failed())
	collectivetest.Run(t, again, everywhere)
	for i, node := range nodes {
		require.NoError(t, node.Close())
		assert.ErrorIs(t, collective.AllReduce(deadline(t), again[i], before[i], collective.Sum), collective.ErrClosed)
		before[i][n-1], after[i][0] = 1, 1
	}
}

// Memory that is not available is an error and has no other effect.
func TestAllocRefuses(t *testing.T) {
	node := start(t, cluster.Config{Cluster: t.Name()}, 1)[0]
	for _, n := range []int{-1, math.MaxInt / 8, math.MaxInt} {
		_, err := node.Alloc(collective.Float64, n)
		require.Error(t, err, "%d", n)
	}
	_, err := node.Alloc(collective.DType(99), 1)
	require.Error(t, err)
	v, err := node.Alloc(collective.Float32, 0)
	require.NoError(t, err)
	require.Zero(t, v.Len())
}
