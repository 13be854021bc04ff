package launch_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// newNetwork creates a network that ends with the test. It skips the test if this process
// cannot create one.
func newNetwork(t *testing.T, nodes int, link int64) *launch.Network {
	t.Helper()
	n, err := launch.Namespaces(t.Context(), nodes, launch.NetworkOptions{Link: link})
	if errors.Is(err, launch.ErrNoNamespaces) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	require.Equal(t, nodes, n.Len())
	return n
}

// printed holds what a worker has printed: lines of a name and a value.
type printed struct {
	mu     sync.Mutex
	values map[string]string
}

// capture collects what the command's process prints.
func capture(c launch.Command) (launch.Command, *printed) {
	s := &printed{values: map[string]string{}}
	c.Stdout = func(line []byte) {
		s.mu.Lock()
		defer s.mu.Unlock()
		name, value, _ := strings.Cut(string(line), " ")
		s.values[name] = value
	}
	return c, s
}

func (s *printed) number(t *testing.T, name string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(s.values[name], 64)
	require.NoError(t, err, "%v", s.values)
	return f
}

// here returns the network namespace of this process, whatever the test did with
// its own thread.
func here(t *testing.T) (name string) {
	t.Helper()
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		name, err = os.Readlink("/proc/thread-self/ns/net")
	}()
	<-over
	require.NoError(t, err)
	return name
}

const testPort = ":7001"

// requireMeeting runs a worker in each node and requires each to connect to all others.
func requireMeeting(t *testing.T, n *launch.Network) {
	t.Helper()
	host := here(t)
	j := launch.Start(t.Context(), patience())
	results := make([]*printed, n.Len())
	workers := make([]*launch.Process, n.Len())
	expected := make([]string, n.Len())
	for i := range n.Len() {
		var peers, seen []string
		for other := range n.Len() {
			if other != i {
				peers = append(peers, n.Addr(other).String()+testPort)
				seen = append(seen, n.Addr(other).String())
			}
		}
		var c launch.Command
		c, results[i] = capture(play(fmt.Sprintf("worker %d", i), "meet",
			envSelf+"="+n.Addr(i).String()+testPort, envPeers+"="+strings.Join(peers, " ")))
		workers[i] = run(t, j, n.Command(i, c))
		expected[i] = strings.Join(seen, ",")
	}
	c, outside := capture(play("outside", "meet", envSelf+"=127.0.0.1:0"))
	run(t, j, c)
	require.NoError(t, j.Wait().Err())
	spaces := map[string]bool{host: true}
	for i, s := range results {
		require.Equal(t, expected[i], s.values["seen"], "worker %d", i)
		require.Equal(t, strconv.Itoa(workers[i].Pid()), s.values["pid"], "no program runs in between")
		require.NotContains(t, spaces, s.values["space"])
		spaces[s.values["space"]] = true
	}
	require.Equal(t, host, outside.values["space"], "the job's thread must return to its namespace")
}

func TestNetwork(t *testing.T) {
	for _, link := range []int64{0, 1e9} {
		for _, nodes := range []int{1, 2, 4} {
			t.Run(fmt.Sprint(nodes, " nodes at ", link), func(t *testing.T) {
				requireMeeting(t, newNetwork(t, nodes, link))
			})
		}
	}
}

func TestManyNodes(t *testing.T) {
	begin := time.Now()
	n := newNetwork(t, 64, 1e8)
	t.Logf("created in %v", time.Since(begin))
	counters, err := n.Counters()
	require.NoError(t, err)
	require.Len(t, counters, 64)
	require.Equal(t, "10.200.0.64", n.Addr(63).String())
	require.False(t, n.Addr(64).IsValid())
	require.False(t, n.Addr(-1).IsValid())
}

// Two networks at the same time share nothing but their addresses.
func TestTwoNetworks(t *testing.T) {
	a, b := newNetwork(t, 2, 0), newNetwork(t, 2, 0)
	requireMeeting(t, a)
	quiet, err := b.Counters()
	require.NoError(t, err)
	require.Equal(t, make([]launch.Counter, 2), quiet, "nothing was sent in b")
	require.NoError(t, a.Close())
	requireMeeting(t, b)
}

// transfer sends between pairs of nodes for a while, all at once. It returns the bytes
// and the bits per second of payload that arrived, by pair.
func transfer(t *testing.T, n *launch.Network, period time.Duration, pairs ...[2]int) (payloads, rates []float64) {
	t.Helper()
	j := launch.Start(t.Context(), patience())
	results := make([]*printed, len(pairs))
	for i, pair := range pairs {
		addr := fmt.Sprintf("%s:%d", n.Addr(pair[1]), 7100+i)
		var c launch.Command
		c, results[i] = capture(play("receiver", "receive", envSelf+"="+addr))
		run(t, j, n.Command(pair[1], c))
		run(t, j, n.Command(pair[0], play("sender", "send", envPeers+"="+addr, envTime+"="+period.String())))
	}
	require.NoError(t, j.Wait().Err())
	for _, s := range results {
		payloads = append(payloads, s.number(t, "bytes"))
		rates = append(rates, 8*s.number(t, "bytes")/s.number(t, "seconds"))
	}
	return payloads, rates
}

// requireLimits requires that no node sends or receives more than its link carries
// while f runs.
func requireLimits(t *testing.T, n *launch.Network, link float64, f func()) {
	t.Helper()
	before, err := n.Counters()
	require.NoError(t, err)
	begin := time.Now()
	f()
	after, err := n.Counters()
	require.NoError(t, err)
	most := link/8*time.Since(begin).Seconds() + 32000
	for i := range after {
		require.LessOrEqual(t, float64(after[i].SentBytes-before[i].SentBytes), most, "sent by node %d", i)
		require.LessOrEqual(t, float64(after[i].ReceivedBytes-before[i].ReceivedBytes), most, "received by node %d", i)
	}
}

func TestLinkRate(t *testing.T) {
	collectivetest.Slow(t)
	tests := []struct {
		link  float64
		least float64 // fraction that arrives, even on a loaded machine
	}{{1e8, 0.75}, {1e9, 0.25}}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.link), func(t *testing.T) {
			n := newNetwork(t, 4, int64(test.link))
			shapes := []struct {
				name  string
				pairs [][2]int
			}{
				{"one way", [][2]int{{0, 1}}},
				{"ring", [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}}},
				{"three to one", [][2]int{{1, 0}, {2, 0}, {3, 0}}},
			}
			for _, shape := range shapes {
				requireLimits(t, n, test.link, func() {
					_, rates := transfer(t, n, time.Second, shape.pairs...)
					for i := range rates {
						rates[i] /= test.link
					}
					t.Logf("%s: fractions of the link: %.3f", shape.name, rates)
					if shape.name == "one way" {
						require.Greater(t, rates[0], test.least)
					}
				})
			}
		})
	}
}

func TestExtremeLinks(t *testing.T) {
	for _, o := range []launch.NetworkOptions{{Link: 1e4}, {Link: 1e12}, {Link: 1e9, Burst: 3028}, {Link: 123_456_789}} {
		newNetwork(t, 1, 0) // skips if impossible
		n, err := launch.Namespaces(t.Context(), 2, o)
		require.NoError(t, err, "%+v", o)
		require.NoError(t, n.Close())
	}
}

func TestNoLimit(t *testing.T) {
	n := newNetwork(t, 2, 0)
	_, rates := transfer(t, n, 300*time.Millisecond, [2]int{0, 1})
	t.Logf("%.3g bit/s", rates[0])
	require.Greater(t, rates[0], 1e8)
}

func TestCounters(t *testing.T) {
	n := newNetwork(t, 3, 1e8)
	payload, _ := transfer(t, n, 300*time.Millisecond, [2]int{1, 2})
	got, err := n.Counters()
	require.NoError(t, err)
	for _, bytes := range []uint64{got[1].SentBytes, got[2].ReceivedBytes} {
		require.Greater(t, float64(bytes), payload[0])
		require.Less(t, float64(bytes), 1.1*payload[0])
	}
	for _, packets := range []uint64{got[1].SentPackets, got[2].ReceivedPackets} {
		require.Greater(t, float64(packets), payload[0]/65536)
		require.Less(t, float64(packets), payload[0]/500)
	}
	acknowledged := got[2].SentBytes
	require.Positive(t, acknowledged)
	require.Equal(t, got[1].ReceivedBytes, acknowledged)
	require.Zero(t, got[0].SentBytes, "node 0 has no processes")
	require.Less(t, got[0].ReceivedBytes, uint64(1000), "but it receives address requests")
}

func TestWrongNodes(t *testing.T) {
	n := newNetwork(t, 2, 0)
	j := launch.Start(t.Context(), patience())
	for _, i := range []int{-1, 2} {
		_, err := j.Run(n.Command(i, play("lost", "ok")))
		require.ErrorContains(t, err, "start lost")
		require.ErrorContains(t, err, "the network has nodes 0 to 1")
	}
	_, err := j.Run(n.Command(0, launch.Command{Path: "/does/not/exist"}))
	require.ErrorIs(t, err, os.ErrNotExist)
	run(t, j, n.Command(0, play("worker 0", "ok")))
	require.NoError(t, j.Wait().Err())
}
