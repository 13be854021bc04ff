package cluster_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/membership"
)

func TestWatch(t *testing.T) {
	nodes := start(t, cluster.Config{Cluster: t.Name(), Node: "a"}, 2)
	w, err := cluster.Watch(deadline(t), cluster.Config{Cluster: t.Name(), Join: []string{nodes[1].Addr().String()}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, w.Close()) }()
	gs := groups(t, nodes)
	v, err := w.View(deadline(t))
	require.NoError(t, err)
	require.Equal(t, -1, v.Self)
	require.Equal(t, gs[0].View().Members, v.Members)
	require.Eventually(t, func() bool { return len(w.Members()) == 2 }, 20*time.Second, time.Millisecond)
	require.Equal(t, v.Members, w.Members())
	require.Equal(t, []string{"a/0", "a/1"}, []string{w.Members()[0].Name, w.Members()[1].Name})

	regroup(t, nodes, gs)
	require.Eventually(t, func() bool {
		v, err := w.View(deadline(t))
		return err == nil && v.Epoch == 2
	}, 20*time.Second, time.Millisecond)
}

// Meet does not wait if nothing is listening.
func TestMeet(t *testing.T) {
	watch := func(seeds ...string) *cluster.Watcher {
		w, err := cluster.Watch(deadline(t), cluster.Config{Cluster: t.Name(), Join: seeds})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, w.Close()) })
		return w
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	free := l.Addr().String()
	require.NoError(t, l.Close())
	absent := watch(free, "localhost"+free[len("127.0.0.1"):])
	err = absent.Meet(deadline(t)) // the context ends with the test
	var none *cluster.NoAnswerError
	require.ErrorAs(t, err, &none)
	require.ErrorContains(t, err, "nothing is listening at "+free)

	silent, err := net.Listen("tcp", "127.0.0.1:0") // like a stopped process: the kernel accepts
	require.NoError(t, err)
	defer func() { assert.NoError(t, silent.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var waited *membership.WaitError
	require.ErrorAs(t, watch(free, silent.Addr().String()).Meet(ctx), &waited)

	nodes := start(t, cluster.Config{Cluster: t.Name(), Node: "a"}, 1)
	require.NoError(t, watch(free, nodes[0].Addr().String()).Meet(deadline(t)), "one that answers is enough")

	closed := watch(free, silent.Addr().String())
	require.NoError(t, closed.Close())
	require.ErrorIs(t, closed.Meet(deadline(t)), membership.ErrClosed)
}

func regroup(t *testing.T, nodes []*cluster.Node, broken []*collective.Group) []*collective.Group {
	next := make([]*collective.Group, len(nodes))
	done := make(chan struct{})
	for i, n := range nodes {
		go func() {
			defer func() { done <- struct{}{} }()
			g, err := n.Regroup(deadline(t), broken[i])
			assert.NoError(t, err)
			next[i] = g
		}()
	}
	for range nodes {
		<-done
	}
	require.False(t, t.Failed(), "a group is missing")
	return next
}

func TestRegroupOfAWholeGroup(t *testing.T) {
	nodes := start(t, cluster.Config{Cluster: t.Name(), Node: "a"}, 3)
	gs := groups(t, nodes)
	next := regroup(t, nodes, gs)
	for i, g := range next {
		require.Equal(t, uint64(2), g.View().Epoch)
		require.Equal(t, gs[i].View().Members, g.View().Members)
		require.Equal(t, gs[i].Rank(), g.Rank())
		again, err := nodes[i].Group(deadline(t))
		require.NoError(t, err)
		require.Same(t, g, again)
		require.ErrorIs(t, gs[i].Barrier(deadline(t)), collective.ErrClosed)
	}
	next = regroup(t, nodes, make([]*collective.Group, 3)) // nil means the newest
	collectivetest.Run(t, next, sumIs(t, 3))
	require.NoError(t, nodes[0].Leave(deadline(t)))
	_, err := nodes[0].Regroup(deadline(t), next[0])
	require.ErrorIs(t, err, collective.ErrClosed)
}

// No process waits for a member that left cleanly.
func TestRegroupAfterLeave(t *testing.T) {
	nodes := start(t, cluster.Config{Cluster: t.Name(), Node: "a"}, 4)
	gs := groups(t, nodes)
	require.NoError(t, nodes[0].Leave(deadline(t)))
	for _, g := range gs[1:] {
		require.Error(t, g.Barrier(deadline(t)))
	}
	begin := time.Now()
	collectivetest.Run(t, regroup(t, nodes[1:], gs[1:]), sumIs(t, 3))
	t.Logf("regrouped in %v", time.Since(begin))
	require.Less(t, time.Since(begin), 5*time.Second)
}

func TestDataAddresses(t *testing.T) {
	addrs := func(c cluster.Config) []netip.AddrPort {
		n := start(t, c, 1)
		return groups(t, n)[0].View().Members[0].Addrs
	}
	one := addrs(cluster.Config{Cluster: t.Name()})
	require.Len(t, one, 1)
	require.True(t, one[0].Addr().IsLoopback())

	own, err := cluster.OwnAddr()
	if err != nil {
		t.Skip(err)
	}
	all := addrs(cluster.Config{Cluster: t.Name(), Bind: netip.AddrPortFrom(own, 0), Insecure: true})
	require.Equal(t, own, all[0].Addr(), "that of Bind comes first")
	seen := map[netip.Addr]bool{}
	for _, a := range all {
		require.Equal(t, all[0].Port(), a.Port())
		require.False(t, a.Addr().IsLoopback() || a.Addr().IsLinkLocalUnicast() || seen[a.Addr()], "%v in %v", a, all)
		seen[a.Addr()] = true
	}
	local := netip.MustParseAddr("127.0.0.1")
	some := addrs(cluster.Config{Cluster: t.Name(), Bind: netip.AddrPortFrom(own, 0), Insecure: true, DataAddrs: []netip.Addr{local, own}})
	require.Equal(t, []netip.Addr{local, own}, []netip.Addr{some[0].Addr(), some[1].Addr()})
	_, err = cluster.Join(deadline(t), cluster.Config{DataAddrs: []netip.Addr{own}})
	require.ErrorIs(t, err, cluster.ErrNoKey)
}
