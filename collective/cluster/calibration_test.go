package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
	require.NoError(t, cluster.Choices(dir).Save(2, calibration.Kept{Choices: want, Done: calibration.Experiments}))
	want.Small = 4 << 10
	nodes := start(t, cluster.Config{Cluster: t.Name(), Node: "n", Transport: cluster.TransportSHM, CacheDir: dir, Calibration: "small=4K"}, 2)
	require.Zero(t, nodes[0].Calibration())
	groups(t, nodes)
	for _, n := range nodes {
		require.Equal(t, calibration.Report{Choices: want, Ranks: 2, Source: calibration.FromStore}, n.Calibration())
	}
}

// Plans use the links as measured. The next job of the same hosts, and the next group, use
// what is known. Without calibration, plans use the defaults.
func TestMeasuredLinks(t *testing.T) {
	dir := t.TempDir()
	links := func(gs []*collective.Group) schedule.Links {
		require.Equal(t, gs[0].Situation().Links, gs[1].Situation().Links)
		return gs[0].Situation().Links
	}
	files := func() []string {
		names, err := filepath.Glob(filepath.Join(dir, "links-*.json"))
		require.NoError(t, err)
		return names
	}
	job := func(name, calibration string) []*collective.Group {
		return groups(t, start(t, cluster.Config{Cluster: t.Name() + name, Node: "n", Transport: cluster.TransportTCP, Calibration: calibration, CacheDir: dir}, 2))
	}
	off := links(job("off", "off"))
	require.Equal(t, schedule.Loopback, off.Near)
	require.Empty(t, off.Calls)
	require.Empty(t, files())

	for attempt := 1; len(files()) == 0; attempt++ { // other load may disturb the calls
		first := links(job(fmt.Sprintf("first%d", attempt), ""))
		require.NotEqual(t, schedule.Loopback, first.Near)
		require.NotEmpty(t, first.Calls)
		require.Equal(t, first.Lasting(), len(files()) == 1)
		require.Less(t, attempt, 50)
	}

	// Without calls to repeat, nothing contradicts what is in the file.
	text, err := os.ReadFile(files()[0])
	require.NoError(t, err)
	var file map[string]any
	require.NoError(t, json.Unmarshal(text, &file))
	known := schedule.Links{Near: schedule.Cost{Latency: 123, PerByte: 4.5}, Far: schedule.Network}
	file["links"] = known
	text, err = json.Marshal(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files()[0], text, 0o600))
	second := job("second", "")
	require.Equal(t, known, links(second))

	refined := links(job("refined", "refine"))
	require.NotEqual(t, known.Near, refined.Near)
	require.Len(t, files(), 1)
}

// The next group of a job uses what is known, and its calls work.
func TestLinksOfNextGroup(t *testing.T) {
	nodes := start(t, cluster.Config{Cluster: t.Name(), Node: "n", Transport: cluster.TransportTCP}, 2)
	first := groups(t, nodes)
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
	require.Equal(t, next[0].Situation().Links, next[1].Situation().Links)
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

func TestChoicesDirectory(t *testing.T) {
	t.Setenv(cluster.EnvCacheDir, "elsewhere")
	require.Equal(t, "elsewhere", cluster.Choices("").Dir)
	require.Equal(t, "here", cluster.Choices("here").Dir)
}
