package cluster_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// Ranks that share memory use the choices in the cache directory, except those that the
// user has fixed.
func TestCachedChoices(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes share memory on Linux only")
	}
	dir := t.TempDir()
	want := calibration.Default(2)
	want.Chunk = 64 << 10
	require.NoError(t, cluster.Choices(dir).Save(2, want))
	want.Small = 4 << 10
	nodes := start(t, cluster.Config{Cluster: t.Name(), Node: "n", Transport: cluster.TransportSHM, CacheDir: dir, Calibration: "small=4K"}, 2)
	require.Zero(t, nodes[0].Calibration())
	groups(t, nodes)
	for _, n := range nodes {
		require.Equal(t, calibration.Report{Choices: want, Ranks: 2, Source: calibration.FromStore}, n.Calibration())
	}
}

// Plans use the links as measured, and the next group of the same hosts does not measure
// them again. Without calibration, plans use the defaults.
func TestMeasuredLinks(t *testing.T) {
	near := func(gs []*collective.Group) schedule.Cost {
		require.Equal(t, gs[0].Situation().Near, gs[1].Situation().Near)
		return gs[0].Situation().Near
	}
	off := start(t, cluster.Config{Cluster: t.Name() + "off", Node: "n", Transport: cluster.TransportTCP, Calibration: "off"}, 2)
	require.Equal(t, schedule.Loopback, near(groups(t, off)))

	nodes := start(t, cluster.Config{Cluster: t.Name(), Node: "n", Transport: cluster.TransportTCP}, 2)
	first := groups(t, nodes)
	cost := near(first)
	require.NotEqual(t, schedule.Loopback, cost)
	require.Positive(t, cost.Latency)

	next := make([]*collective.Group, 2)
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() {
			var err error
			next[i], err = n.Regroup(deadline(t), first[i])
			assert.NoError(t, err)
		})
	}
	all.Wait()
	require.Equal(t, cost, near(next))
	for i, n := range nodes {
		all.Go(func() {
			one := []int64{1}
			assert.NoError(t, collective.AllReduce(context.Background(), next[i], one, collective.Sum))
			assert.Equal(t, int64(2), one[0])
			assert.NoError(t, n.Close())
		})
	}
	all.Wait()
}
