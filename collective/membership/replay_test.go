package membership

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// eavesdropper forwards streams and records what diallers send.
type eavesdropper struct {
	ln   net.Listener
	to   netip.AddrPort
	work sync.WaitGroup
	mu   sync.Mutex
	said [][]byte
}

func eavesdrop(t *testing.T, to netip.AddrPort) *eavesdropper {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e := &eavesdropper{ln: ln, to: to}
	e.work.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			e.work.Go(func() { e.pass(near) })
		}
	})
	return e
}

func (e *eavesdropper) pass(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", e.to.String())
	if err != nil {
		return
	}
	defer far.Close()
	var heard bytes.Buffer
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(near, far)
		_ = near.Close()
	})
	_, _ = io.Copy(io.MultiWriter(far, &heard), near)
	_ = far.Close()
	back.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.said = append(e.said, heard.Bytes())
}

// stop returns the recording.
func (e *eavesdropper) stop() [][]byte {
	_ = e.ln.Close()
	e.work.Wait()
	return e.said
}

// replay sends the recording to another process until ctx ends.
func replay(ctx context.Context, to netip.AddrPort, said [][]byte) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, b := range said {
			if c, err := net.Dial("tcp", to.String()); err == nil {
				_, _ = c.Write(b)
				_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
				_, _ = io.Copy(io.Discard, c) // it answers as to a member
				_ = c.Close()
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Gossip recorded in an earlier job with the same key has no part in a later one,
// although it decrypts: its processes no longer answer.
func TestReplayOfAnEarlierJob(t *testing.T) {
	noLeak(t)
	key := bytes.Repeat([]byte("K"), keySize)
	first := start(t, Config{Member: member("vm0", 0, 1), Nodes: 3, Key: key})
	road := eavesdrop(t, first.Addr())
	second := start(t, Config{Member: member("vm1", 0, 1), Nodes: 3, Key: key, Join: []string{road.ln.Addr().String()}})
	third := start(t, Config{Member: member("vm2", 0, 1), Nodes: 3, Key: key, Join: []string{road.ln.Addr().String()}})
	views(t, []*Agent{first, second, third})
	for _, a := range []*Agent{first, second, third} {
		require.NoError(t, a.Close())
	}
	said := road.stop()
	require.NotEmpty(t, said)

	a := start(t, Config{Member: member("vm0", 0, 1), Nodes: 2, Key: key})
	ctx, cancel := context.WithCancel(t.Context())
	var strangers sync.WaitGroup
	strangers.Go(func() { replay(ctx, a.Addr(), said) })
	defer strangers.Wait()
	defer cancel()
	require.Eventually(t, func() bool { return a.list.NumMembers() > 1 }, patient, time.Millisecond, "memberlist believes it")
	wait, done := context.WithTimeout(t.Context(), contradictionTime*3/2)
	defer done()
	_, err := a.View(wait)
	require.ErrorIs(t, err, context.DeadlineExceeded, "no process has joined, and none contradicts")
	require.ErrorContains(t, err, "1 of 2 workers have joined")
	b := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Key: key, Join: []string{a.Addr().String()}})
	views(t, []*Agent{a, b})
}

// If datagrams are lost, processes call and answer over streams.
func TestRollCallByStreams(t *testing.T) {
	noLeak(t)
	key := bytes.Repeat([]byte("K"), keySize)
	a := start(t, Config{Member: member("vm0", 0, 1), Nodes: 2, Key: key})
	b := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Key: key, Join: []string{a.Addr().String()}})
	views(t, []*Agent{a, b})
	other := peerOf(b.Member())
	a.in.put(func(now time.Time) {
		c := a.machine.census.seen[other]
		a.roll.gone(other)
		a.roll.see(now, c)
		a.roll.calls[other].tries = callDatagrams
		a.callRoll(now)
	})
	require.Eventually(t, func() bool {
		answered := make(chan bool)
		a.in.put(func(time.Time) { answered <- a.roll.here[other] })
		return <-answered
	}, patient, 5*time.Millisecond)
}
