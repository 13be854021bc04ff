package tcp_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// closedPort returns an address at which nothing listens, nor will during the test: a
// connection uses its port. A process of another test, with the same name, could get a port
// that has become free.
func closedPort(t *testing.T) netip.AddrPort {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		_ = l.Close()
	})
	return conn.LocalAddr().(*net.TCPAddr).AddrPort()
}

// A member that announces useless addresses as well is soon reached at the one that works.
func TestUselessAddresses(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0") // accepts, but never answers
	require.NoError(t, err)
	defer mute.Close()
	other := listen(t, 4)[3] // answers that it is another process
	for name, test := range map[string]struct {
		before []netip.AddrPort
		most   time.Duration
	}{
		"a dead address":         {[]netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:9")}, 2 * time.Second},
		"several dead addresses": {[]netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:9"), netip.MustParseAddrPort("198.51.100.1:9")}, 2 * time.Second},
		"a closed port":          {[]netip.AddrPort{closedPort(t)}, 2 * time.Second},
		"another process":        {[]netip.AddrPort{other.addr()}, 2 * time.Second},
		"silence":                {[]netip.AddrPort{mute.Addr().(*net.TCPAddr).AddrPort()}, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := listen(t, 3)
			vs := views(nodes, 1)
			var log bytes.Buffer
			nodes[1].connector.Log = slog.New(slog.NewTextHandler(&log, nil))
			for r := range vs[0].Members { // the Views share the members
				m := &vs[0].Members[r]
				m.Addrs = append(append([]netip.AddrPort{}, test.before...), append(m.Addrs, netip.MustParseAddrPort("192.0.2.2:9"))...)
			}
			begin := time.Now()
			transports := make([]collective.Transport, len(nodes))
			var all sync.WaitGroup
			for r := range nodes {
				all.Go(func() {
					tr, err := nodes[r].connector.Connect(deadline(t), vs[r])
					assert.NoError(t, err)
					transports[r] = tr
				})
			}
			all.Wait()
			require.Less(t, time.Since(begin), test.most)
			collectivetest.Run(t, collectivetest.Groups(t, vs, transports, collective.Options{}), func(ctx context.Context, g *collective.Group) {
				assert.NoError(t, g.Barrier(ctx))
			})
			require.Contains(t, log.String(), "rank=0 name=n/0 addr="+nodes[0].addr().String())
			require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("connected")), "one line per peer: %s", &log)
		})
	}
}

func TestEveryAddressDead(t *testing.T) {
	nodes := listen(t, 2)
	vs := views(nodes, 1)
	at := closedPort(t)
	vs[0].Members[1].Addrs = []netip.AddrPort{at, at}
	begin := time.Now()
	_, err := nodes[0].connector.Connect(deadline(t), vs[0])
	var missing *collective.RankError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, 1, missing.Rank)
	require.Less(t, time.Since(begin), time.Second)
}

func TestIPv6(t *testing.T) {
	ln, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 on loopback: ", err)
	}
	require.NoError(t, ln.Close())
	for _, at := range []string{"[::1]:0", ":0"} {
		nodes := listen(t, 2)
		vs := views(nodes, 1)
		for r, n := range nodes {
			six, err := tcp.Listen(t.Context(), at, n.id, n.connector)
			require.NoError(t, err)
			defer func() { assert.NoError(t, six.Close()) }()
			port := six.Addr().(*net.TCPAddr).AddrPort().Port()
			vs[0].Members[r].Addrs = []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Loopback(), port)}
		}
		var all sync.WaitGroup
		for r := range nodes {
			all.Go(func() {
				tr, err := nodes[r].connector.Connect(deadline(t), vs[r])
				if assert.NoError(t, err) {
					assert.NoError(t, tr.Close())
				}
			})
		}
		all.Wait()
	}
}
