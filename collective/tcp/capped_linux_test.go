package tcp_test

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// A capped network carries burst bytes per tick on each connection, in each direction.
const (
	burst     = 16 << 10
	burstTick = 2 * time.Millisecond
)

// capped returns an address at which the process at addr can be reached through a network
// that limits the bandwidth of every connection.
func capped(t *testing.T, addr netip.AddrPort) netip.AddrPort {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	carry := func(to, from net.Conn) {
		defer from.Close()
		defer to.Close()
		stop := context.AfterFunc(ctx, func() { _ = from.Close() })
		defer stop()
		tick := time.NewTicker(burstTick)
		defer tick.Stop()
		for b := make([]byte, burst); ; <-tick.C {
			n, err := from.Read(b)
			if _, writeErr := to.Write(b[:n]); err != nil || writeErr != nil {
				return
			}
		}
	}
	all.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", addr.String())
			if err != nil {
				_ = near.Close()
				continue
			}
			all.Go(func() { carry(far, near) })
			all.Go(func() { carry(near, far) })
		}
	})
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, ln.Close())
		all.Wait()
	})
	return ln.Addr().(*net.TCPAddr).AddrPort()
}

// Stripes travel in parallel: if the network limits each connection, four streams are
// faster than one.
func TestStripesTravelInParallel(t *testing.T) {
	took := map[int]time.Duration{}
	for _, streams := range []int{1, 4} {
		nodes := listenStreams(t, 2, streams, noKey)
		vs := views(nodes, 1)
		for r := range vs[0].Members { // the views share the members
			vs[0].Members[r].Addrs = []netip.AddrPort{capped(t, nodes[r].addr())}
		}
		under := make([]collective.Transport, 2)
		var all sync.WaitGroup
		for r := range nodes {
			all.Go(func() {
				tr, err := nodes[r].connector.Connect(deadline(t), vs[r])
				assert.NoError(t, err)
				under[r] = tr
			})
		}
		all.Wait()
		groups := collectivetest.Groups(t, vs, under, collective.Options{})
		plan := groups[0].PlanAllReduce(collective.Of(make([]float32, 1<<19)), collective.Sum)
		require.Equal(t, streams, plan.Streams)
		require.Equal(t, streams, groups[0].Streams())
		collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
			s := make([]float32, 1<<19)
			for range 4 { // the fastest of a few, because the machine may be busy
				begin := time.Now()
				assert.NoError(t, collective.AllReduce(ctx, g, s, collective.Sum))
				if d := time.Since(begin); g.Rank() == 0 && (took[streams] == 0 || d < took[streams]) {
					took[streams] = d
				}
			}
		})
	}
	require.Greater(t, took[1], 2*took[4], "1 stream took %v, 4 streams %v", took[1], took[4])
}
