package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"

	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/collective/shm"
)

func TestMain(m *testing.M) {
	if os.Getenv(envWorker) != "" {
		os.Exit(worker())
	}
	goleak.VerifyTestMain(collectivetest.InOwnDirectories(m))
}

func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// start makes the workers of one machine. All except the first join the first.
func start(t testing.TB, c cluster.Config, workers int) []*cluster.Node {
	nodes := make([]*cluster.Node, workers)
	c.LocalSize = workers
	for i := range nodes {
		c.Local = i
		var err error
		nodes[i], err = cluster.Join(deadline(t), c)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, nodes[i].Close()) })
		if i == 0 {
			c.Join = append(c.Join, nodes[0].Addr().String())
		}
	}
	return nodes
}

func groups(t testing.TB, nodes []*cluster.Node) []*collective.Group {
	out := make([]*collective.Group, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() {
			g, err := n.Group(deadline(t))
			assert.NoError(t, err)
			out[i] = g
		})
	}
	all.Wait()
	return out
}

// sumIs returns a check of a sum over a group of n.
func sumIs(t *testing.T, n int) func(context.Context, *collective.Group) {
	return func(ctx context.Context, g *collective.Group) {
		one := []int64{1}
		assert.NoError(t, collective.AllReduce(ctx, g, one, collective.Sum))
		assert.Equal(t, []int64{int64(n)}, one)
	}
}

func TestOneProcess(t *testing.T) {
	g := groups(t, start(t, cluster.Config{}, 1))[0]
	require.Equal(t, 1, g.Size())
	require.Equal(t, 0, g.Rank())
	s := []float32{1, 2}
	require.NoError(t, collective.AllReduce(deadline(t), g, s, collective.Sum))
	require.Equal(t, []float32{1, 2}, s)
}

func TestTwoMachines(t *testing.T) {
	c := cluster.Config{Cluster: t.Name(), Nodes: 2, Node: "b"}
	first := start(t, c, 2)
	c.Node, c.Join = "a", []string{first[0].Addr().String()}
	gs := groups(t, append(first, start(t, c, 3)...))
	seen := map[int]string{}
	for _, g := range gs {
		seen[g.Rank()] = g.View().Name(g.Rank())
		require.Equal(t, gs[0].View().Digest(), g.View().Digest())
	}
	require.Equal(t, map[int]string{0: "a/0", 1: "a/1", 2: "a/2", 3: "b/0", 4: "b/1"}, seen)
	collectivetest.Run(t, gs, func(ctx context.Context, g *collective.Group) {
		s := []int64{int64(g.Rank())}
		assert.NoError(t, collective.AllReduce(ctx, g, s, collective.Sum))
		assert.Equal(t, []int64{10}, s)
	})
}

// A Node knows what carries its Group's messages.
func TestSharesMemory(t *testing.T) {
	for transport, shared := range map[string]bool{cluster.TransportTCP: false, cluster.TransportSHM: true} {
		if shared && runtime.GOOS != "linux" {
			continue
		}
		nodes := start(t, cluster.Config{Cluster: t.Name() + transport, Node: "a", Transport: transport}, 2)
		require.False(t, nodes[0].SharesMemory(), "it has no Group")
		groups(t, nodes)
		for _, n := range nodes {
			require.Equal(t, shared, n.SharesMemory(), transport)
		}
	}
}

// A rank that must share memory but cannot reports to the others why it leaves.
func TestMemoryThatMustBeShared(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is shared on Linux only")
	}
	c := cluster.Config{Cluster: t.Name(), Node: "a", LocalSize: 2, Transport: cluster.TransportSHM}
	must, err := cluster.Join(deadline(t), c)
	require.NoError(t, err)
	c.Local, c.Transport, c.Join = 1, cluster.TransportTCP, []string{must.Addr().String()}
	plain, err := cluster.Join(deadline(t), c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, errors.Join(must.Close(), plain.Close())) })
	var all sync.WaitGroup
	all.Go(func() {
		_, err := must.Group(deadline(t))
		assert.ErrorIs(t, err, shm.ErrNotShared)
	})
	g, err := plain.Group(deadline(t))
	if err == nil {
		err = g.Barrier(deadline(t))
	}
	all.Wait()
	require.ErrorContains(t, err, "rank 0 (a/0) could not connect in epoch 1: ")
	require.ErrorContains(t, err, "memory is not shared")
}

func TestJobsOfOtherNamesDoNotMeet(t *testing.T) {
	one := start(t, cluster.Config{Cluster: "one", Node: "a"}, 1)
	c := cluster.Config{Cluster: "two", Node: "b", Nodes: 2, Join: []string{one[0].Addr().String()}}
	two := start(t, c, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := two[0].Group(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "waiting for 1 more machine (1 of 2 workers have joined): "+c.Join[0]+" hung up")
}

func TestLeave(t *testing.T) {
	nodes := start(t, cluster.Config{Cluster: t.Name(), Node: "a"}, 2)
	gs := groups(t, nodes)
	require.NoError(t, nodes[1].Leave(deadline(t)))
	err := gs[0].Barrier(deadline(t))
	require.ErrorIs(t, err, collective.ErrLeft)
	require.ErrorIs(t, gs[1].Barrier(deadline(t)), collective.ErrClosed)
	_, err = nodes[1].Group(deadline(t))
	require.Error(t, err)
}

func TestMistakes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	at := taken.Addr().(*net.TCPAddr).AddrPort()
	for want, c := range map[string]cluster.Config{
		"Local counts from 0":  {Local: 2, LocalSize: 2},
		"LocalSize must be at": {LocalSize: -1},
		"name one address":     {Bind: netip.MustParseAddrPort("0.0.0.0:0")},
		"slash":                {Node: "a/b"},
		"use Watch":            {Role: collective.Watcher},
		"200 bytes, not 300":   {Cluster: fmt.Sprintf("%0300d", 1)},
		"at most 96 bytes":     {Node: fmt.Sprintf("%0300d", 1)},
		at.String():            {Bind: at},
		`calibration (RINGTRAIN_CALIBRATION): "on" is neither`: {Calibration: "on"},
		"Nodes": {Join: []string{"127.0.0.1:1"}},
	} {
		_, err := cluster.Join(deadline(t), c)
		require.ErrorContains(t, err, want)
	}
	_, err = cluster.Join(deadline(t), cluster.Config{Bind: at})
	require.ErrorIs(t, err, membership.ErrPortInUse)
}

func TestEnvironment(t *testing.T) {
	_, ok, err := cluster.FromEnv()
	require.NoError(t, err)
	require.False(t, ok)
	want := cluster.Config{Cluster: "c", Nodes: 3, NodeRank: 2, Rank0: "vm1", Node: "vm1-7f3a", Local: 2, LocalSize: 4, Role: collective.Server,
		Bind: netip.MustParseAddrPort("10.0.0.1:0"), Join: []string{"10.0.0.2:7946", "h:1"},
		KeyFile: "/etc/job.key", Insecure: true, MinSize: 2, Transport: cluster.TransportTCP, Streams: 4, Calibration: "off,chunk=64K", CacheDir: "/var/cache/x",
		DataAddrs: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}}
	for _, v := range want.Environ() {
		for i := range v {
			if v[i] == '=' {
				t.Setenv(v[:i], v[i+1:])
				break
			}
		}
	}
	got, ok, err := cluster.FromEnv()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, want, got)
	for name, bad := range map[string]string{cluster.EnvLocal: "x", cluster.EnvRole: "watcher", cluster.EnvBind: "nowhere", cluster.EnvInsecure: "perhaps", cluster.EnvDataAddrs: "eth0"} {
		good := os.Getenv(name)
		t.Setenv(name, bad)
		_, ok, err = cluster.FromEnv()
		require.True(t, ok)
		require.ErrorContains(t, err, name)
		t.Setenv(name, good)
	}
}

func TestAddresses(t *testing.T) {
	a, err := cluster.AddrTowards("127.0.0.1:1")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", a.String())
	_, err = cluster.AddrTowards("nowhere.invalid:1")
	require.Error(t, err)
	for host, want := range map[string]string{"localhost": `^(127\.0\.0\.1|::1)$`, "127.0.0.2": `^127\.0\.0\.2$`, "fd00::1": `^fd00::1$`} {
		a, err = cluster.LocalAddr(host)
		require.NoError(t, err)
		require.Regexp(t, want, a.String())
	}
	_, err = cluster.LocalAddr("nowhere.invalid")
	require.ErrorContains(t, err, "nowhere.invalid")
	if own, err := cluster.OwnAddr(); err == nil {
		require.False(t, own.IsLoopback())
	}
	require.Regexp(t, `^[^/.]+-[0-9a-f]{6}$`, cluster.NodeName())
}
