package tcp_test

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// A counter forwards everything, and counts the bytes of each connection in each direction.
type counter struct {
	mu      sync.Mutex
	carried []*atomic.Int64
}

func (c *counter) forward(_ int, near, far *net.TCPConn) {
	var back sync.WaitGroup
	back.Go(func() { c.carry(near, far) })
	c.carry(far, near)
	back.Wait()
}

// carry forwards one direction. It counts bytes before they can arrive.
func (c *counter) carry(to, from *net.TCPConn) {
	n := new(atomic.Int64)
	c.mu.Lock()
	c.carried = append(c.carried, n)
	c.mu.Unlock()
	defer to.CloseWrite()
	for b := make([]byte, 64<<10); ; {
		got, err := from.Read(b)
		n.Add(int64(got))
		if _, writeErr := to.Write(b[:got]); err != nil || writeErr != nil {
			return
		}
	}
}

// busiest returns what each connection has carried in each direction, in descending order.
func (c *counter) busiest() (bytes []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.carried {
		bytes = append(bytes, int(n.Load()))
	}
	slices.Sort(bytes)
	slices.Reverse(bytes)
	return bytes
}

// All connections carry a part of a long message, so that a network that limits each of them
// limits the message less.
func TestStripesUseAllConnections(t *testing.T) {
	const n, calls = 1 << 19, 4
	for _, streams := range []int{1, 4} {
		var c counter
		nodes := listenStreams(t, 2, streams, noKey)
		vs := views(nodes, 1)
		for r := range vs[0].Members { // the views share the members
			vs[0].Members[r].Addrs = []netip.AddrPort{through(t, nodes[r].addr(), c.forward)}
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
		plan := groups[0].PlanAllReduce(collective.Of(make([]float32, n)), collective.Sum)
		require.Equal(t, streams, plan.Streams)
		require.Equal(t, streams, groups[0].Streams())
		collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
			s := make([]float32, n)
			for range calls {
				assert.NoError(t, collective.AllReduce(ctx, g, s, collective.Sum))
			}
		})
		// Each rank sends half of the vector twice.
		for i, bytes := range c.busiest()[:2*streams] {
			require.InEpsilon(t, 4*n*calls/streams, bytes, .1, "connection %d of %d", i, streams)
		}
	}
}
