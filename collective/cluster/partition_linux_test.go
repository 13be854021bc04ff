package cluster_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// A cable joins two network namespaces.
type cable struct {
	t     *testing.T
	names [2]string
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(t, err, "ip %q: %s", args, out)
}

// namespace makes a network namespace, or skips the test.
func namespace(t *testing.T, name string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("the command ip is missing")
	}
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		t.Skipf("no network namespaces here: %s", out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
}

func newCable(t *testing.T) *cable {
	c := &cable{t: t, names: [2]string{fmt.Sprintf("rtca%d", os.Getpid()), fmt.Sprintf("rtcb%d", os.Getpid())}}
	namespace(t, c.names[0])
	namespace(t, c.names[1])
	ip(t, "-n", c.names[0], "link", "add", "v", "type", "veth", "peer", "name", "v", "netns", c.names[1])
	for i, ns := range c.names {
		ip(t, "-n", ns, "addr", "add", c.addr(i).String()+"/24", "dev", "v")
		ip(t, "-n", ns, "link", "set", "lo", "up")
		ip(t, "-n", ns, "link", "set", "v", "up")
	}
	return c
}

func (c *cable) addr(end int) netip.Addr { return netip.AddrFrom4([4]byte{10, 99, 7, byte(1 + end)}) }

// set takes "up" or "down".
func (c *cable) set(state string) { ip(c.t, "-n", c.names[0], "link", "set", "v", state) }

// A job that is cut in two continues on the side of the majority. When the network is
// repaired, gossip heals by itself, and the others learn that they are out.
func TestPartitionHeals(t *testing.T) {
	collectivetest.Slow(t)
	wire := newCable(t)
	c := cluster.Config{Cluster: t.Name(), Nodes: 2, Insecure: true}
	var ps, watchers []*process
	for end, workers := range []int{3, 2} {
		c.Node, c.LocalSize = string(rune('a'+end)), workers
		c.Bind = netip.AddrPortFrom(wire.addr(end), 0)
		command := []string{"ip", "netns", "exec", wire.names[end], os.Args[0]}
		for c.Local = range workers {
			ps = append(ps, spawnAs(t, c, "stubborn", command...))
			if len(ps) == 1 {
				c.Join = []string{ps[0].expect("addr ")}
			}
		}
		c.Local = 0
		watchers = append(watchers, spawnAs(t, c, "watches", command...))
	}
	for _, p := range ps {
		p.expectGroup(1, ps)
	}
	for _, w := range watchers {
		w.expect("sees 6 epoch 1") // including the other watcher
	}
	begin := time.Now()
	wire.set("down")
	majority, minority := ps[:3], ps[3:]
	for _, p := range majority {
		p.expectGroup(2, majority)
	}
	t.Logf("the majority continues after %v", time.Since(begin))
	for _, p := range minority {
		require.Contains(t, p.expect("minority "), "2 of the 5 members of epoch 1 can be reached, 3 are needed")
	}
	watchers[0].expect("sees 3 epoch 2")
	watchers[1].expect("sees 2 epoch 1")
	t.Logf("cut for good after %v", time.Since(begin))
	begin = time.Now()
	wire.set("up")
	for _, p := range minority {
		require.Contains(t, p.expect("end "), "expelled")
	}
	t.Logf("the minority knows after %v", time.Since(begin))
	for !strings.HasSuffix(watchers[1].expect("sees "), " epoch 2") { // of any number: expelled members may leave before all are seen
	}
	t.Logf("whole again after %v", time.Since(begin))
	require.Less(t, time.Since(begin), 25*time.Second)
}
