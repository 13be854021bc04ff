package shm_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/shm"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

func TestGroup(t *testing.T) { collectivetest.TestGroup(t, groups) }

// Even ranks are on one host, odd ranks on another.
func TestGroupMixed(t *testing.T) {
	collectivetest.Slow(t)
	collectivetest.TestGroup(t, func(t testing.TB, n int) []*collective.Group {
		views, transports := connect(t, n, twoHosts, shm.Options{})
		return collectivetest.Groups(t, views, transports, collective.Options{})
	})
}

func TestMethods(t *testing.T) {
	collectivetest.TestMethods(t, func(t testing.TB, n int) ([]collective.View, []collective.Transport) {
		return connect(t, n, oneHost, shm.Options{Must: true})
	})
}

func TestMethodsMixed(t *testing.T) {
	collectivetest.Slow(t)
	collectivetest.TestMethods(t, func(t testing.TB, n int) ([]collective.View, []collective.Transport) {
		return connect(t, n, twoHosts, shm.Options{})
	})
}

func TestAllocations(t *testing.T) { collectivetest.TestAllocations(t, groups) }

func BenchmarkAllReduce(b *testing.B)  { collectivetest.BenchmarkAllReduce(b, groups) }
func BenchmarkSmallCalls(b *testing.B) { collectivetest.BenchmarkSmallCalls(b, groups) }

func groups(t testing.TB, n int) []*collective.Group {
	views, transports := connect(t, n, oneHost, shm.Options{Must: true})
	return collectivetest.Groups(t, views, transports, collective.Options{})
}

func oneHost(int) collective.HostID       { return 1 }
func twoHosts(rank int) collective.HostID { return collective.HostID(1 + rank%2) }

// connect returns the transports of n ranks, which are goroutines of this process.
// hosts says which host each pretends to be on.
func connect(t testing.TB, n int, hosts func(rank int) collective.HostID, o shm.Options) ([]collective.View, []collective.Transport) {
	views, transports, errs := join(t, n, hosts, func(int) shm.Options { return o })
	for r := range errs {
		require.NoError(t, errs[r], "rank %d", r)
	}
	return views, transports
}

// join is connect with options for each rank. It also returns the errors of Join.
func join(t testing.TB, n int, hosts func(int) collective.HostID, options func(rank int) shm.Options) ([]collective.View, []collective.Transport, []error) {
	connectors := make([]*tcp.Connector, n)
	members := make([]collective.Member, n)
	for r := range n {
		id := tcp.Identity{Cluster: "test", Name: fmt.Sprintf("n/%d", r), Nonce: uint64(100 + r)}
		connectors[r] = tcp.NewConnector(id)
		l, err := tcp.Listen(context.Background(), "127.0.0.1:0", id, connectors[r])
		require.NoError(t, err)
		t.Cleanup(func() {
			assert.NoError(t, l.Close())
			connectors[r].Close()
		})
		at := l.Addr().(*net.TCPAddr).AddrPort()
		members[r] = collective.Member{Name: id.Name, Nonce: id.Nonce, Host: hosts(r), Addrs: []netip.AddrPort{at}}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	views, transports, errs := make([]collective.View, n), make([]collective.Transport, n), make([]error, n)
	var all, connected sync.WaitGroup
	connected.Add(n)
	for r := range n {
		views[r] = collective.View{Job: 7, Epoch: 1, Self: r, Members: members}
		all.Go(func() {
			under, err := connectors[r].Connect(ctx, views[r])
			connected.Done()
			if errs[r] = err; err != nil {
				return
			}
			connected.Wait() // a rank that fails closes connections that others may be waiting for
			o := options(r)
			if o.Calibration.Mode == calibration.Off && o.Calibration.Fixed == nil {
				o.Calibration = shm.Reading
			}
			if n == 1 {
				o.Must = false
			}
			if transports[r], errs[r] = shm.Join(ctx, views[r], under, o); errs[r] != nil {
				assert.NoError(t, under.Close())
			}
		})
	}
	all.Wait()
	return views, transports, errs
}
