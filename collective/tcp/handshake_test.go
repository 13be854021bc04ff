package tcp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// A fault forwards the bytes of the n-th connection, counted from 0, between the dialler
// (near) and the process it dials (far). When it returns, both ends are closed.
type fault func(n int, near, far *net.TCPConn)

// through returns an address at which the process at addr can be reached through a faulty
// network.
func through(t *testing.T, addr netip.AddrPort, f fault) netip.AddrPort {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for n := 0; ; n++ {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", addr.String())
			if err != nil {
				_ = near.Close()
				return
			}
			end := func() { _, _ = near.Close(), far.Close() }
			all.Go(func() {
				defer end()
				defer context.AfterFunc(ctx, end)()
				f(n, near.(*net.TCPConn), far.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, ln.Close())
		all.Wait()
	})
	return ln.Addr().(*net.TCPAddr).AddrPort()
}

// forward forwards everything.
func forward(near, far *net.TCPConn) {
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(near, far)
		_ = near.CloseWrite()
	})
	_, _ = io.Copy(far, near)
	_ = far.CloseWrite()
	back.Wait()
}

// connectTime is far more than ranks that start together need to connect.
const connectTime = time.Minute

// shortTimeout is the first timeout for an answer in tests.
const shortTimeout = 100 * time.Millisecond

// connectThrough connects two ranks over faulty networks, one in each direction, and checks
// that the connections work.
func connectThrough(t *testing.T, prove func(tcp.Identity) *secret.Identity, f func() fault) {
	nodes := listenAs(t, 2, prove)
	vs := views(nodes, 1)
	for r, n := range nodes {
		n.connector.SetTimeouts(shortTimeout, 5*time.Second)
		vs[0].Members[r].Addrs = []netip.AddrPort{through(t, n.addr(), f())}
	}
	checkBarriers(t, vs, connectAll(t, deadline(t), nodes, vs))
}

func connectAll(t *testing.T, ctx context.Context, nodes []*node, vs []collective.View) []collective.Transport {
	made := make([]collective.Transport, len(nodes))
	var all sync.WaitGroup
	for r := range nodes {
		all.Go(func() {
			tr, err := nodes[r].connector.Connect(ctx, vs[r])
			if assert.NoError(t, err) {
				made[r] = tr
			}
		})
	}
	all.Wait()
	return made
}

func checkBarriers(t *testing.T, vs []collective.View, made []collective.Transport) {
	if t.Failed() {
		return
	}
	collectivetest.Run(t, collectivetest.Groups(t, vs, made, collective.Options{}), func(ctx context.Context, g *collective.Group) {
		for range 3 {
			assert.NoError(t, g.Barrier(ctx))
		}
	})
}

func withAndWithoutKey(t *testing.T, f func(t *testing.T, prove func(tcp.Identity) *secret.Identity)) {
	t.Run("no key", func(t *testing.T) { f(t, noKey) })
	t.Run("TLS", func(t *testing.T) { f(t, prover(t)) })
}

// A connection that ends during the handshake says nothing about the peer. It is dialled
// again, however it ended.
func TestEndDuringHandshake(t *testing.T) {
	withAndWithoutKey(t, func(t *testing.T, prove func(tcp.Identity) *secret.Identity) {
		for _, reset := range []bool{false, true} {
			for _, bytes := range []int64{0, 20, 60} {
				for _, answer := range []bool{false, true} { // whether the bytes are those of the hello or of the answer
					t.Run(fmt.Sprintf("reset %v, %d bytes, answer %v", reset, bytes, answer), func(t *testing.T) {
						t.Parallel() // most of its time is backoff
						connectThrough(t, prove, func() fault {
							return func(n int, near, far *net.TCPConn) {
								if n >= 2 {
									forward(near, far)
									return
								}
								var all sync.WaitGroup
								if answer {
									all.Go(func() { _, _ = io.Copy(far, near) })
									_, _ = io.CopyN(near, far, bytes)
								} else {
									_, _ = io.CopyN(far, near, bytes)
								}
								if reset {
									_ = near.SetLinger(0)
									_ = far.SetLinger(0)
								}
								_, _ = near.Close(), far.Close()
								all.Wait()
							}
						})
					})
				}
			}
		}
	})
}

// If the answer arrives after the dialler has given up and dialled again, neither side keeps
// a dead connection.
func TestLateAnswer(t *testing.T) {
	withAndWithoutKey(t, func(t *testing.T, prove func(tcp.Identity) *secret.Identity) {
		connectThrough(t, prove, func() fault {
			return func(n int, near, far *net.TCPConn) {
				if n > 2 {
					forward(near, far)
					return
				}
				_, _ = io.Copy(far, near) // until the dialler gives up; it gets nothing
			}
		})
	})
}

// If every hello takes longer than the first timeout, connecting still succeeds, because
// later timeouts are longer.
func TestLateHello(t *testing.T) {
	withAndWithoutKey(t, func(t *testing.T, prove func(tcp.Identity) *secret.Identity) {
		connectThrough(t, prove, func() fault {
			return func(_ int, near, far *net.TCPConn) {
				select {
				case <-time.After(shortTimeout * 11 / 10):
				case <-t.Context().Done():
				}
				forward(near, far)
			}
		})
	})
}

// A permanently dead address does not stop the dialler from trying an unreliable one again.
func TestDeadAddressAndUnreliableAddress(t *testing.T) {
	nodes := listen(t, 2)
	vs := views(nodes, 1)
	for r, n := range nodes {
		unreliable := through(t, n.addr(), func(n int, near, far *net.TCPConn) {
			if n > 1 {
				forward(near, far)
			}
		})
		vs[0].Members[r].Addrs = []netip.AddrPort{closedPort(t), unreliable}
	}
	checkBarriers(t, vs, connectAll(t, deadline(t), nodes, vs))
}

// A rank that has accepted Links but calls Connect late is not lost, even if it sends nothing
// for longer than the silence limit.
func TestLateConnect(t *testing.T) {
	nodes := listen(t, 2)
	vs := views(nodes, 1)
	for _, n := range nodes {
		n.connector.SetTimeouts(shortTimeout, shortTimeout)
	}
	made := make([]collective.Transport, 2)
	var all sync.WaitGroup
	for r := range nodes {
		all.Go(func() {
			if r == 1 { // rank 0 dials its control Link
				select {
				case <-time.After(3 * shortTimeout):
				case <-t.Context().Done():
				}
				nodes[1].connector.SetTimeouts(shortTimeout, 5*time.Second)
			}
			tr, err := nodes[r].connector.Connect(deadline(t), vs[r])
			assert.NoError(t, err)
			made[r] = tr
		})
	}
	all.Wait()
	if !t.Failed() {
		for _, tr := range made {
			assert.NoError(t, tr.Close())
		}
	}
}

// All Links are accepted, even if there are far more than a Listener has slots, and the idle
// limit is short.
func TestMoreLinksThanSlots(t *testing.T) {
	withAndWithoutKey(t, func(t *testing.T, prove func(tcp.Identity) *secret.Identity) {
		const n, slots = 8, 4
		nodes := make([]*node, n)
		for r := range nodes {
			id := tcp.Identity{Cluster: "test", Name: fmt.Sprintf("n/%d", r), Nonce: uint64(100 + r)}
			id.Secret = prove(id)
			connector := tcp.NewConnector(id)
			connector.Streams = 4
			connector.SetTimeouts(shortTimeout, 5*time.Second)
			listener, err := tcp.ListenLimited(t.Context(), id, connector, slots, 100*time.Millisecond)
			require.NoError(t, err)
			nodes[r] = &node{id: id, connector: connector, listener: listener}
			t.Cleanup(func() { assert.NoError(t, listener.Close()) })
		}
		vs := views(nodes, 1)
		// On a busy machine, diallers are often silent for longer than the idle limit, and must
		// try again.
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		checkBarriers(t, vs, connectAll(t, ctx, nodes, vs))
	})
}

// slow is a Handler that takes long to allow its first Link, like a process that is short of
// CPU time.
type slow struct {
	asked atomic.Bool
	in    chan struct{} // closed when the first Allow begins
	out   chan struct{} // the first Allow returns when this is closed
}

func (s *slow) AcceptFailed(error) {}

func (s *slow) Allow(tcp.Identity, tcp.Purpose) error {
	if !s.asked.Swap(true) {
		close(s.in)
		<-s.out
	}
	return nil
}

func (s *slow) Accept(l *tcp.Link) { _ = l.Close() }

// If all slots are in use, only diallers that this process waits for lose theirs: silent
// ones, and those that send single bytes. A dialler that waits for this process keeps its
// slot, however slow this process is.
func TestEviction(t *testing.T) {
	const idle = 20 * time.Millisecond
	withAndWithoutKey(t, func(t *testing.T, prove func(tcp.Identity) *secret.Identity) {
		ids := [2]tcp.Identity{}
		for i := range ids {
			ids[i] = tcp.Identity{Cluster: "test", Name: fmt.Sprintf("n/%d", i), Nonce: uint64(100 + i)}
			ids[i].Secret = prove(ids[i])
		}
		handler := &slow{in: make(chan struct{}), out: make(chan struct{})}
		listener, err := tcp.ListenLimited(t.Context(), ids[0], handler, 3, idle)
		require.NoError(t, err)
		var strangers sync.WaitGroup
		defer strangers.Wait()
		defer func() { assert.NoError(t, listener.Close()) }()
		dial := func() error {
			l, err := tcp.Dial(deadline(t), listener.Addr().String(), ids[1], tcp.Peer{Name: "n/0", Nonce: 100}, tcp.Purpose{Channel: tcp.Bulk})
			if err == nil {
				_ = l.Close()
			}
			return err
		}
		first := make(chan error)
		go func() { first <- dial() }()
		<-handler.in
		for i := range 8 {
			c, err := net.Dial("tcp", listener.Addr().String())
			require.NoError(t, err)
			strangers.Go(func() {
				defer c.Close()
				begin := []byte("RINGTRN\x00")
				if ids[0].Secret != nil {
					begin = []byte{0x16, 3, 1, 0x10, 0, 1, 0, 0x0f, 0xfc, 3, 3}
				}
				if i%2 == 0 {
					_, _ = c.Read(make([]byte, 1)) // until the listener closes the connection
					return
				}
				tick := time.NewTicker(idle / 4)
				defer tick.Stop()
				for k := 0; ; k++ {
					b := byte(0)
					if k < len(begin) {
						b = begin[k]
					}
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
					<-tick.C
				}
			})
		}
		require.NoError(t, dial(), "behind strangers in every slot")
		close(handler.out)
		require.NoError(t, <-first, "while it held a slot")
	})
}

// If waiting cannot help, Connect fails at once, and says why.
func TestFinalRefusals(t *testing.T) {
	fail := func(t *testing.T, at netip.AddrPort, n *node, v collective.View) error {
		v.Members = append([]collective.Member{}, v.Members...)
		v.Members[0].Addrs = []netip.AddrPort{at}
		_, err := n.connector.Connect(deadline(t), v)
		var missing *collective.RankError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, 0, missing.Rank)
		return err
	}
	began := time.Now()
	nodes := listen(t, 3)
	vs := views(nodes[:2], 1)

	require.ErrorContains(t, fail(t, nodes[2].addr(), nodes[1], vs[1]), "this is n/2, not n/0")

	newer, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer newer.Close()
	go func() {
		for {
			c, err := newer.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("RINGTRN\x00\x63\x00\x00\x00"))
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	require.ErrorContains(t, fail(t, newer.Addr().(*net.TCPAddr).AddrPort(), nodes[1], vs[1]), "it uses version 99 of the wire format")

	one, err := nodes[0].connector.Connect(deadline(t), views(nodes[:1], 1)[0])
	require.NoError(t, err)
	defer one.Close()
	require.ErrorContains(t, fail(t, nodes[0].addr(), nodes[1], vs[1]), "n/0 has different members in epoch 1")
	require.Less(t, time.Since(began), 4*time.Second)
}
