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

// A mishap carries the bytes of the n-th connection, from 0, between a dialler
// and who it dials, until it thinks that is enough. Both ends are closed then.
type mishap func(n int, near, far *net.TCPConn)

// through is where a process is reached under addr through a network that has
// mishaps.
func through(t *testing.T, addr netip.AddrPort, m mishap) netip.AddrPort {
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
				m(n, near.(*net.TCPConn), far.(*net.TCPConn))
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

// carry is no mishap at all.
func carry(near, far *net.TCPConn) {
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(near, far)
		_ = near.CloseWrite()
	})
	_, _ = io.Copy(far, near)
	_ = far.CloseWrite()
	back.Wait()
}

// connectTime is what ranks that start together get: far more than it takes.
const connectTime = time.Minute

// brief is a first answer's time in tests.
const brief = 100 * time.Millisecond

// mishaps connects two ranks over networks with mishaps, in both directions, and
// makes sure that what they got works.
func mishaps(t *testing.T, prove func(tcp.Identity) *secret.Identity, m func() mishap) {
	nodes := listenAs(t, 2, prove)
	vs := views(nodes, 1)
	for r, n := range nodes {
		n.gate.Hurry(brief, 5*time.Second)
		vs[0].Members[r].Addrs = []netip.AddrPort{through(t, n.addr(), m())}
	}
	works(t, vs, connectAll(t, deadline(t), nodes, vs))
}

func connectAll(t *testing.T, ctx context.Context, nodes []*node, vs []collective.View) []collective.Transport {
	made := make([]collective.Transport, len(nodes))
	var all sync.WaitGroup
	for r := range nodes {
		all.Go(func() {
			tr, err := nodes[r].gate.Connect(ctx, vs[r])
			if assert.NoError(t, err) {
				made[r] = tr
			}
		})
	}
	all.Wait()
	return made
}

func works(t *testing.T, vs []collective.View, made []collective.Transport) {
	if t.Failed() {
		return
	}
	collectivetest.Run(t, collectivetest.Groups(t, vs, made, collective.Options{}), func(ctx context.Context, g *collective.Group) {
		for range 3 {
			assert.NoError(t, g.Barrier(ctx))
		}
	})
}

func sealedAndPlain(t *testing.T, f func(t *testing.T, prove func(tcp.Identity) *secret.Identity)) {
	t.Run("plain", func(t *testing.T) { f(t, plain) })
	t.Run("TLS", func(t *testing.T) { f(t, prover(t)) })
}

// A connection that ends in the middle of a handshake, however it ends, is made
// again. It says nothing about the peer.
func TestEndDuringHandshake(t *testing.T) {
	sealedAndPlain(t, func(t *testing.T, prove func(tcp.Identity) *secret.Identity) {
		for _, reset := range []bool{false, true} {
			for _, bytes := range []int64{0, 20, 60} {
				for _, said := range []bool{false, true} { // bytes of the hello, or of the answer
					t.Run(fmt.Sprintf("reset %v, %d bytes, answer %v", reset, bytes, said), func(t *testing.T) {
						t.Parallel() // they wait to dial again
						mishaps(t, prove, func() mishap {
							return func(n int, near, far *net.TCPConn) {
								if n >= 2 {
									carry(near, far)
									return
								}
								var all sync.WaitGroup
								if said {
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

// An answer that comes after the dialler has given up, and dialled again, leaves
// nobody with a connection that is dead.
func TestAnswerThatIsLate(t *testing.T) {
	sealedAndPlain(t, func(t *testing.T, prove func(tcp.Identity) *secret.Identity) {
		mishaps(t, prove, func() mishap {
			return func(n int, near, far *net.TCPConn) {
				if n > 2 {
					carry(near, far)
					return
				}
				_, _ = io.Copy(far, near) // until the dialler gives up; to it nothing comes
			}
		})
	})
}

// A hello that takes longer than the dialler waits at first, each time, arrives:
// the dialler becomes patient.
func TestHelloThatIsLate(t *testing.T) {
	sealedAndPlain(t, func(t *testing.T, prove func(tcp.Identity) *secret.Identity) {
		mishaps(t, prove, func() mishap {
			return func(_ int, near, far *net.TCPConn) {
				select {
				case <-time.After(brief * 11 / 10): // as 5.5 s to 5 s
				case <-t.Context().Done():
				}
				carry(near, far)
			}
		})
	})
}

// One address that is dead for good says nothing about the others.
func TestDeadAddressBesideAnUnreliableOne(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	nodes := listen(t, 2)
	vs := views(nodes, 1)
	for r, n := range nodes {
		unreliable := through(t, n.addr(), func(n int, near, far *net.TCPConn) {
			if n > 1 {
				carry(near, far)
			}
		})
		vs[0].Members[r].Addrs = []netip.AddrPort{closed.Addr().(*net.TCPAddr).AddrPort(), unreliable}
	}
	works(t, vs, connectAll(t, deadline(t), nodes, vs))
}

// A rank may begin to connect later than a peer may be silent: it has let the
// Links in, and that is not a death.
func TestRankThatConnectsLate(t *testing.T) {
	nodes := listen(t, 2)
	vs := views(nodes, 1)
	for _, n := range nodes {
		n.gate.Hurry(brief, brief)
	}
	made := make([]collective.Transport, 2)
	var all sync.WaitGroup
	for r := range nodes {
		all.Go(func() {
			if r == 1 { // whom rank 0 dials for control
				select {
				case <-time.After(3 * brief):
				case <-t.Context().Done():
				}
				nodes[1].gate.Hurry(brief, 5*time.Second)
			}
			tr, err := nodes[r].gate.Connect(deadline(t), vs[r])
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

// Many more Links than a Listener lets say hello at a time all get in, though
// those who wait may not wait long.
func TestCrowdOfRanks(t *testing.T) {
	sealedAndPlain(t, func(t *testing.T, prove func(tcp.Identity) *secret.Identity) {
		const n, slots = 8, 4
		nodes := make([]*node, n)
		for r := range nodes {
			id := tcp.Identity{Cluster: "test", Name: fmt.Sprintf("n/%d", r), Nonce: uint64(100 + r)}
			id.Secret = prove(id)
			gate := tcp.NewGate(id)
			gate.Streams = 4
			gate.Hurry(brief, 5*time.Second)
			listener, err := tcp.ListenCrowded(t.Context(), id, gate, slots, 20*time.Millisecond)
			require.NoError(t, err)
			nodes[r] = &node{id: id, gate: gate, listener: listener}
			t.Cleanup(func() { assert.NoError(t, listener.Close()) })
		}
		vs := views(nodes, 1)
		works(t, vs, connectAll(t, deadline(t), nodes, vs))
	})
}

// slow is a Handler that takes its time, as a process does that lacks the
// processor.
type slow struct {
	first atomic.Bool
	in    chan struct{} // closed when the first visitor is asked about
	out   chan struct{} // it is let in when this is closed
}

func (s *slow) Unheard(error) {}

func (s *slow) Allow(tcp.Identity, tcp.Purpose) error {
	if !s.first.Swap(true) {
		close(s.in)
		<-s.out
	}
	return nil
}

func (s *slow) Accept(l *tcp.Link) { _ = l.Close() }

// Whoever has said what was to be said is not hung up on, however long others
// wait and however slow this process is; who says nothing is, and so is who says
// it byte by byte.
func TestWhoMakesWayInACrowd(t *testing.T) {
	const crowd = 20 * time.Millisecond
	sealedAndPlain(t, func(t *testing.T, prove func(tcp.Identity) *secret.Identity) {
		ids := [2]tcp.Identity{}
		for i := range ids {
			ids[i] = tcp.Identity{Cluster: "test", Name: fmt.Sprintf("n/%d", i), Nonce: uint64(100 + i)}
			ids[i].Secret = prove(ids[i])
		}
		handler := &slow{in: make(chan struct{}), out: make(chan struct{})}
		listener, err := tcp.ListenCrowded(t.Context(), ids[0], handler, 3, crowd)
		require.NoError(t, err)
		var strangers sync.WaitGroup
		defer strangers.Wait()
		defer func() { assert.NoError(t, listener.Close()) }()
		meet := func() error {
			l, err := tcp.Dial(deadline(t), listener.Addr().String(), ids[1], tcp.Peer{Name: "n/0", Nonce: 100}, tcp.Purpose{Channel: tcp.Bulk})
			if err == nil {
				_ = l.Close()
			}
			return err
		}
		met := make(chan error)
		go func() { met <- meet() }()
		<-handler.in
		for i := range 8 {
			c, err := net.Dial("tcp", listener.Addr().String())
			require.NoError(t, err)
			strangers.Go(func() {
				defer c.Close()
				begins := []byte("RINGTRN\x00")
				if ids[0].Secret != nil {
					begins = []byte{0x16, 3, 1, 0x10, 0, 1, 0, 0x0f, 0xfc, 3, 3}
				}
				if i%2 == 0 {
					_, _ = c.Read(make([]byte, 1)) // until it is hung up on
					return
				}
				tick := time.NewTicker(crowd / 4)
				defer tick.Stop()
				for k := 0; ; k++ {
					b := byte(0)
					if k < len(begins) {
						b = begins[k]
					}
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
					<-tick.C
				}
			})
		}
		require.NoError(t, meet(), "behind a crowd")
		close(handler.out)
		require.NoError(t, <-met, "in a crowd")
	})
}

// What waiting cannot change ends at once, and is told as it is.
func TestFinalRefusals(t *testing.T) {
	fail := func(t *testing.T, at netip.AddrPort, n *node, v collective.View) error {
		v.Members = append([]collective.Member{}, v.Members...)
		v.Members[0].Addrs = []netip.AddrPort{at}
		_, err := n.gate.Connect(deadline(t), v)
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
	require.ErrorContains(t, fail(t, newer.Addr().(*net.TCPAddr).AddrPort(), nodes[1], vs[1]), "it speaks version 99 of the wire format")

	one, err := nodes[0].gate.Connect(deadline(t), views(nodes[:1], 1)[0])
	require.NoError(t, err)
	defer one.Close()
	require.ErrorContains(t, fail(t, nodes[0].addr(), nodes[1], vs[1]), "n/0 has other members in epoch 1")
	require.Less(t, time.Since(began), 4*time.Second)
}
