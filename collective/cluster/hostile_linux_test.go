package cluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// descriptors returns the number of descriptors that this process has open.
func descriptors(t testing.TB) []string {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	var open []string
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.HasPrefix(to, "/proc/") {
			open = append(open, e.Name()+" "+to)
		}
	}
	return open
}

// resident returns the memory of this process, in bytes.
func resident(t testing.TB) int {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var size, pages int
	_, err = fmt.Sscan(string(b), &size, &pages)
	require.NoError(t, err)
	return pages * os.Getpagesize()
}

// garbage returns random bytes after a valid beginning.
func garbage(r *rand.Rand, most int) []byte {
	begins := []string{"", "", "RINGTRN\x00", "RINGTRN\x00\x02\x00\x00\x00", "\x16\x03\x01\x02\x00\x01", "\x00", "\x01", "\x06", "\x08", "\x0a\xff\xff\xff\xff", "\xf4\x07garbage"}
	b := []byte(begins[r.IntN(len(begins))])
	for n := r.IntN(most); n > 0; n-- {
		b = append(b, byte(r.Uint32()))
	}
	return b
}

// pester sends datagrams and opens many connections to every port of a job. Some
// connections send garbage, some nothing, some a byte now and then.
func pester(t *testing.T, gossip, data []netip.AddrPort, datagrams, connections int) {
	r := rand.New(rand.NewPCG(1, 2))
	udp, err := net.ListenUDP("udp", nil)
	require.NoError(t, err)
	defer udp.Close()
	for i := range datagrams {
		_, err := udp.WriteToUDPAddrPort(garbage(r, 1300), gossip[i%len(gossip)])
		require.NoError(t, err)
	}
	var open []net.Conn
	defer func() {
		for _, c := range open {
			assert.NoError(t, c.Close())
		}
	}()
	for _, at := range append(append([]netip.AddrPort{}, gossip...), data...) {
		for i := range connections {
			c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", at.String())
			if err != nil {
				continue // its queue is full
			}
			switch i % 3 {
			case 0:
				_, _ = c.Write(garbage(r, 3000))
				_ = c.Close()
				continue
			case 1:
				_, _ = c.Write([]byte{byte(r.Uint32())})
			}
			if len(open) < 500 { // descriptors
				open = append(open, c)
			} else {
				_ = c.Close()
			}
		}
	}
	for _, c := range open {
		_, _ = c.Write([]byte{1})
	}
}

// Whatever strangers send, a job continues, gives correct sums, takes little more
// memory, and can still agree on the next View.
func TestGarbageOnEveryPort(t *testing.T) {
	datagrams, connections := 30_000, 1000
	if !collectivetest.Thorough() {
		datagrams, connections = 3000, 100
	}
	for name, c := range map[string]cluster.Config{"plain": {}, "key": {Key: newKey(t)}} {
		t.Run(name, func(t *testing.T) {
			c.Cluster, c.Node = t.Name(), "m"
			nodes := start(t, c, 3)
			gs := groups(t, nodes)
			var gossip, data []netip.AddrPort
			for i, n := range nodes {
				gossip = append(gossip, n.Addr())
				data = append(data, gs[0].View().Members[i].Addrs[0])
			}
			before := resident(t)
			stop, calls := make(chan struct{}), 0
			done := make(chan struct{})
			go func() {
				defer close(done)
				collectivetest.Run(t, gs, func(ctx context.Context, g *collective.Group) {
					for more := []int64{1}; more[0] > 0; {
						s := []int64{1}
						if !assert.NoError(t, collective.AllReduce(context.Background(), g, s, collective.Sum)) {
							return
						}
						assert.Equal(t, []int64{3}, s)
						if g.Rank() == 0 { // the others wait and leave the cores to the strangers
							calls++
							select {
							case <-stop:
								more[0] = 0
							case <-time.After(time.Millisecond):
							}
						}
						if !assert.NoError(t, collective.Broadcast(context.Background(), g, more, 0)) {
							return
						}
					}
				})
			}()
			pester(t, gossip, data, datagrams, connections)
			close(stop)
			<-done
			after := resident(t)
			t.Logf("%d calls meanwhile; resident %d KiB before, %d KiB after", calls, before>>10, after>>10)
			require.Less(t, after-before, 256<<20, "the race detector takes many times what the program does")
			require.Positive(t, calls)
			for _, g := range regroup(t, nodes, gs) {
				require.Equal(t, 3, g.Size())
			}
		})
	}
}

// A Node leaves nothing open, however it ends.
func TestNothingIsLeftOpen(t *testing.T) {
	lives := 200
	if !collectivetest.Thorough() {
		lives = 20
	}
	key := newKey(t)
	life := func(i int) {
		c := cluster.Config{Cluster: t.Name(), Node: "m", LocalSize: 2, ConnectTime: 5 * time.Second}
		if i%2 == 1 {
			c.Key = key
		}
		join := func() *cluster.Node {
			n, err := cluster.Join(deadline(t), c)
			require.NoError(t, err)
			return n
		}
		first := join()
		if i%4 >= 2 { // no other member comes
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			_, err := first.Group(ctx)
			cancel()
			require.Error(t, err)
			require.NoError(t, first.Close())
			return
		}
		c.Local, c.Join = 1, []string{first.Addr().String()}
		nodes := []*cluster.Node{first, join()}
		gs := groups(t, nodes)
		if i%8 >= 4 {
			gs = regroup(t, nodes, gs)
		}
		collectivetest.Run(t, gs, sumIs(t, 2))
		for _, n := range nodes {
			require.NoError(t, n.Close())
		}
	}
	life(0) // the runtime opens some descriptors once
	before := descriptors(t)
	for i := range lives {
		life(i)
	}
	require.Eventually(t, func() bool { return len(descriptors(t)) <= len(before) }, 5*time.Second, 10*time.Millisecond, "before %q, after %q", before, descriptors(t))
}
