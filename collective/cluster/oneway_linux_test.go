package cluster_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// newHub makes network namespaces and joins them by a bridge, which has one of its own.
func newHub(t *testing.T, count int) (names []string, addrs []netip.Addr) {
	hub := fmt.Sprintf("rthub%d", os.Getpid())
	namespace(t, hub)
	if out, err := exec.Command("ip", "-n", hub, "link", "add", "name", "hub", "type", "bridge").CombinedOutput(); err != nil {
		t.Skipf("no bridges here: %s", out)
	}
	ip(t, "-n", hub, "link", "set", "hub", "up")
	for i := range count {
		name, port := fmt.Sprintf("rtspoke%d-%d", os.Getpid(), i), fmt.Sprintf("v%d", i)
		addr := netip.AddrFrom4([4]byte{10, 99, 8, byte(1 + i)})
		namespace(t, name)
		ip(t, "-n", hub, "link", "add", port, "type", "veth", "peer", "name", "v", "netns", name)
		ip(t, "-n", hub, "link", "set", port, "master", "hub", "up")
		ip(t, "-n", name, "addr", "add", addr.String()+"/24", "dev", "v")
		ip(t, "-n", name, "link", "set", "lo", "up")
		ip(t, "-n", name, "link", "set", "v", "up")
		names, addrs = append(names, name), append(addrs, addr)
	}
	return names, addrs
}

// If two of three machines cannot connect, the third, which is connected to both, does not
// blame one of them for being late.
func TestBlockedPair(t *testing.T) {
	collectivetest.Slow(t)
	names, addrs := newHub(t, 3)
	ip(t, "-n", names[1], "route", "add", "unreachable", addrs[2].String()+"/32")
	c := cluster.Config{Cluster: t.Name(), Nodes: 3, Insecure: true, LocalSize: 1}
	var ps []*process
	for i := range names {
		c.Node, c.NodeRank, c.Bind = string(rune('a'+i)), i, netip.AddrPortFrom(addrs[i], 0)
		ps = append(ps, spawnAs(t, c, "1", "ip", "netns", "exec", names[i], os.Args[0]))
		if i == 0 {
			c.Join = []string{ps[0].expect("addr ")}
		}
	}
	for rank, p := range ps {
		end := p.expect("end ")
		require.Contains(t, end, "could not connect in epoch 1", "rank %d", rank)
		if rank > 0 {
			require.Contains(t, end, fmt.Sprintf("rank %d (%c/0)", 3-rank, 'c'+1-rank), "rank %d", rank)
			require.Contains(t, end, "although gossip works: a firewall may block this TCP port in this direction", "rank %d", rank)
		}
	}
}
