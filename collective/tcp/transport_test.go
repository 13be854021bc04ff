package tcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGroup(t *testing.T) { collectivetest.TestGroup(t, groups) }

func TestMethods(t *testing.T) {
	collectivetest.TestMethods(t, func(t testing.TB, n int) ([]collective.View, []collective.Transport) {
		return transports(t, listen(t, n))
	})
}

func TestOrders(t *testing.T) {
	collectivetest.TestOrders(t, func(t testing.TB, n int) ([]collective.View, []collective.Transport) {
		return transports(t, listen(t, n))
	})
}

func TestAllocations(t *testing.T) { collectivetest.TestAllocations(t, groups) }

func groups(t testing.TB, n int) []*collective.Group { return connect(t, listen(t, n)) }

func connect(t testing.TB, nodes []*node) []*collective.Group {
	views, transports := transports(t, nodes)
	return collectivetest.Groups(t, views, transports, collective.Options{})
}

func transports(t testing.TB, nodes []*node) ([]collective.View, []collective.Transport) {
	n := len(nodes)
	views := views(nodes, 1)
	transports := make([]collective.Transport, n)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			tr, err := nodes[r].connector.Connect(deadline(t), views[r])
			assert.NoError(t, err)
			transports[r] = tr
		})
	}
	all.Wait()
	return views, transports
}

// node is what this package needs of one process.
type node struct {
	id        tcp.Identity
	connector *tcp.Connector
	listener  *tcp.Listener
}

func listen(t testing.TB, n int) []*node {
	return listenAs(t, n, noKey)
}

// noKey gives processes no key.
func noKey(tcp.Identity) *secret.Identity { return nil }

// listenAs starts n processes with the secrets that prove returns.
func listenAs(t testing.TB, n int, prove func(tcp.Identity) *secret.Identity) []*node {
	nodes := make([]*node, n)
	for r := range nodes {
		id := tcp.Identity{Cluster: "test", Name: fmt.Sprintf("n/%d", r), Nonce: uint64(100 + r)}
		id.Secret = prove(id)
		nodes[r] = &node{id: id, connector: tcp.NewConnector(id)}
		var err error
		nodes[r].listener, err = tcp.Listen(context.Background(), "127.0.0.1:0", id, nodes[r].connector)
		require.NoError(t, err)
		t.Cleanup(func() {
			assert.NoError(t, nodes[r].listener.Close())
			nodes[r].connector.Close()
		})
	}
	return nodes
}

func (n *node) addr() netip.AddrPort { return n.listener.Addr().(*net.TCPAddr).AddrPort() }

func views(nodes []*node, epoch uint64) []collective.View {
	members := make([]collective.Member, len(nodes))
	for r, n := range nodes {
		members[r] = collective.Member{Name: n.id.Name, Nonce: n.id.Nonce, Addrs: []netip.AddrPort{n.addr()}}
	}
	out := make([]collective.View, len(nodes))
	for r := range out {
		out[r] = collective.View{Job: 7, Epoch: epoch, Self: r, Members: members}
	}
	return out
}

func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// If a rank has ended before all have connected, the others name it at once, whichever it
// is.
func TestDeathWhileConnecting(t *testing.T) {
	const n = 4
	for victim := range n {
		nodes := listen(t, n)
		vs := views(nodes, 1)
		require.NoError(t, nodes[victim].listener.Close())
		ctx := deadline(t)
		var all sync.WaitGroup
		for r := range n {
			if r == victim {
				continue
			}
			all.Go(func() {
				_, err := nodes[r].connector.Connect(ctx, vs[r])
				var missing *collective.RankError
				if assert.ErrorAs(t, err, &missing, "rank %d", r) {
					assert.Equal(t, victim, missing.Rank, "rank %d: %v", r, err)
					assert.Equal(t, "connect", missing.Phase)
				}
			})
		}
		all.Wait()
		require.NoError(t, ctx.Err(), "a rank waited for the deadline")
	}
}

// Close right after Abort does not cut off the report.
func TestCloseAfterAbort(t *testing.T) {
	for range 5 {
		groups := groups(t, 6)
		collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
			if g.Rank() == 0 {
				g.Abort(errors.New("out of paper"))
				assert.NoError(t, g.Close())
				return
			}
			err := g.Barrier(ctx)
			assert.ErrorContains(t, err, "out of paper", "rank %d", g.Rank())
			assert.NoError(t, g.Close(), "ranks that got the report close at once, too")
		})
	}
}

func TestCloseDuringConnect(t *testing.T) {
	nodes := listen(t, 2)
	vs := views(nodes, 1)
	errs := make(chan error)
	go func() {
		_, err := nodes[0].connector.Connect(deadline(t), vs[0])
		errs <- err
	}()
	nodes[0].connector.Close()
	require.ErrorIs(t, <-errs, collective.ErrClosed)
}

// A rank may compute for any time while others wait in a call with full sockets. Its
// heartbeats keep it from being lost.
func TestSlowCallerIsNotLost(t *testing.T) {
	collectivetest.Slow(t)
	groups := groups(t, 3)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		s := make([]float32, 8<<20)
		if g.Rank() == 1 {
			select { // a long computation
			case <-time.After(7 * time.Second):
			case <-ctx.Done():
			}
		}
		assert.NoError(t, collective.AllReduce(ctx, g, s, collective.Sum), "rank %d", g.Rank())
	})
}

// If a process dies, its connections end without a goodbye. All survivors name it, whether
// they wait for it or for another rank.
func TestDeathIsNamedByAll(t *testing.T) {
	const n, victim = 5, 2
	nodes := listen(t, n)
	vs := views(nodes, 1)
	transports := make([]*tcp.Transport, n)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			var err error
			transports[r], err = nodes[r].connector.Connect(deadline(t), vs[r])
			assert.NoError(t, err)
		})
	}
	all.Wait()
	gs := make([]collective.Transport, n)
	for r := range gs {
		gs[r] = transports[r]
	}
	groups := collectivetest.Groups(t, vs, gs, collective.Options{})
	var ready sync.WaitGroup
	ready.Add(n)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		s := make([]float32, 1<<20)
		assert.NoError(t, collective.AllReduce(ctx, g, s, collective.Sum))
		ready.Done()
		ready.Wait()
		if g.Rank() == victim {
			transports[victim].Kill()
			return
		}
		err := collective.AllReduce(ctx, g, s, collective.Sum)
		var lost *collective.RankError
		if assert.ErrorAs(t, err, &lost, "rank %d", g.Rank()) {
			assert.Equal(t, victim, lost.Rank, "rank %d: %v", g.Rank(), err)
			assert.Equal(t, "n/2", lost.Node)
			assert.ErrorIs(t, err, collective.ErrLost)
			assert.EqualValues(t, 2, lost.Seq)
			assert.Less(t, lost.After, time.Second)
		}
	})
}

func TestRefusals(t *testing.T) {
	nodes := listen(t, 2)
	ctx := deadline(t)
	want := tcp.Peer{Name: "n/0", Nonce: 100}
	dial := func(id tcp.Identity, want tcp.Peer, p tcp.Purpose) error {
		l, err := tcp.Dial(ctx, nodes[0].addr().String(), id, want, p)
		if err == nil {
			require.NoError(t, l.Close())
		}
		return err
	}
	id := nodes[1].id
	good := tcp.Purpose{Job: 7, Epoch: 3, Rank: 1, Channel: tcp.Bulk}
	require.NoError(t, dial(id, want, good))

	err := dial(tcp.Identity{Cluster: "other", Name: "x"}, want, good)
	require.ErrorIs(t, err, tcp.ErrRefused)
	require.ErrorContains(t, err, `this is cluster "test", not "other"`)
	require.ErrorContains(t, dial(id, tcp.Peer{Name: "n/9", Nonce: 1}, good), "this is n/0, not n/9")
	require.ErrorContains(t, dial(id, tcp.Peer{Name: "n/0", Nonce: 1}, good), "n/0 has been restarted")

	one := views(nodes[:1], 3)
	tr, err := nodes[0].connector.Connect(ctx, one[0])
	require.NoError(t, err)
	defer tr.Close()
	stale := good
	stale.Epoch = 2
	require.ErrorContains(t, dial(id, want, stale), "epoch 2 is over, n/0 is in epoch 3")
	stale.Epoch, stale.Job = 3, 8
	require.ErrorContains(t, dial(id, want, stale), "is in job 0000000000000007, not 0000000000000008")
	nodes[0].connector.Close()
	require.ErrorContains(t, dial(id, want, good), "is leaving")
}

// A connection that does not use the protocol is closed and does no harm.
func TestGarbage(t *testing.T) {
	nodes := listen(t, 1)
	for _, garbage := range []string{"", "GET / HTTP/1.1\r\n\r\n" + string(make([]byte, 1000)), "RINGTRN\x00\xff\xff\xff\xff", "RINGTRN\x00\x02\x00\x00\x00"} {
		conn, err := net.Dial("tcp", nodes[0].addr().String())
		require.NoError(t, err)
		_, err = conn.Write([]byte(garbage))
		require.NoError(t, err)
		_ = conn.(*net.TCPConn).CloseWrite() // the listener may have closed it
		answer, _ := io.ReadAll(conn)
		if len(garbage) > 8 && garbage[8] == 0xff {
			require.Contains(t, string(answer), fmt.Sprintf("version 4294967295 of the wire format, this process uses version %d", tcp.Version))
		} else {
			require.Empty(t, answer)
		}
		require.NoError(t, conn.Close())
	}
	// Dialling something else is reported as such.
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	go func() {
		c, err := other.Accept()
		if err == nil {
			_, _ = c.Write([]byte("220 mail.example ready, please speak\r\n"))
			_ = c.Close()
		}
	}()
	_, err = tcp.Dial(deadline(t), other.Addr().String(), nodes[0].id, tcp.Peer{Name: "x"}, tcp.Purpose{})
	require.ErrorIs(t, err, tcp.ErrNotOurs)
}

// A rank that has waited in vain for another reports that to it, so that the other learns
// in which direction the network is blocked.
func TestConnectReportsMissingRank(t *testing.T) {
	t.Parallel() // it keeps dialling a silent peer for reportTime
	nodes := listen(t, 2)
	vs := views(nodes, 1)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // instead of rank 0
	require.NoError(t, err)
	defer silent.Close()
	vs[0].Members[0].Addrs = []netip.AddrPort{silent.Addr().(*net.TCPAddr).AddrPort()} // the Views share the members
	late := errors.New("out of time")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, late)
	defer cancel()
	var reported *collective.RankError
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := nodes[1].connector.Connect(deadline(t), vs[1])
		assert.ErrorAs(t, err, &reported)
	})
	_, err = nodes[0].connector.Connect(ctx, vs[0])
	require.ErrorIs(t, err, collective.ErrNotConnected)
	require.ErrorIs(t, err, late)
	wg.Wait()
	require.ErrorIs(t, reported, collective.ErrNotConnected)
	require.ErrorAs(t, reported, new(*collective.ReportedError))
	require.ErrorContains(t, reported, "rank 1 (n/1) could not connect in epoch 1: it did not connect in time: out of time (reported by rank 0)")
}

// If the context of Connect is cancelled, a rank blames itself and not the network.
func TestConnectCancelled(t *testing.T) {
	nodes := listen(t, 2)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("asked to stop"))
	for r, v := range views(nodes, 1) {
		_, err := nodes[r].connector.Connect(ctx, v)
		var stopped *collective.RankError
		require.ErrorAs(t, err, &stopped)
		require.Equal(t, r, stopped.Rank, "%v", err)
		require.Equal(t, "cancelled", stopped.Phase)
		require.ErrorContains(t, err, "asked to stop")
	}
}

func TestConnectNamesMissingRank(t *testing.T) {
	nodes := listen(t, 2)
	vs := views(nodes, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := nodes[0].connector.Connect(ctx, vs[0])
	var missing *collective.RankError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, 1, missing.Rank)
	require.Equal(t, "connect", missing.Phase)
	require.ErrorContains(t, err, "it did not connect in time")

	nodes = listen(t, 2)
	vs = views(nodes, 1)
	require.NoError(t, nodes[0].listener.Close())
	_, err = nodes[1].connector.Connect(deadline(t), vs[1])
	require.ErrorAs(t, err, &missing)
	require.Equal(t, 0, missing.Rank)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestPortInUse(t *testing.T) {
	nodes := listen(t, 1)
	_, err := tcp.Listen(context.Background(), nodes[0].addr().String(), nodes[0].id, nodes[0].connector)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, nodes[0].addr().String())
}
