package cluster_test

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

// If gossip gets through and the data plane does not, both sides name the port and
// the direction.
func TestBlockedPorts(t *testing.T) {
	holes := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")} // documentation addresses, which do not answer
	for name, at := range map[string]int{"of the lower rank": 0, "of the higher rank": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := []cluster.Config{{Node: "a"}, {Node: "b", NodeRank: 1}}
			for i := range c {
				c[i].Cluster, c[i].Nodes, c[i].ConnectTime, c[i].Insecure = t.Name(), 2, time.Second, true
			}
			c[at].DataAddrs = holes
			nodes := start(t, c[0], 1)
			c[1].Join = []string{nodes[0].Addr().String()}
			nodes = append(nodes, start(t, c[1], 1)...)
			var both sync.WaitGroup
			for i, n := range nodes {
				both.Go(func() {
					_, err := n.Group(deadline(t))
					var blocked *cluster.BlockedError
					if !assert.ErrorAs(t, err, &blocked) {
						return
					}
					assert.Equal(t, 1-i, blocked.Rank)
					assert.Equal(t, i == at, blocked.In)
					assert.Equal(t, holes[0], blocked.Addrs[0].Addr())
					assert.ErrorContains(t, err, blocked.Addrs[0].String()+" or "+blocked.Addrs[1].String()+", although gossip works: a firewall may block this TCP port in this direction")
					assert.NotContains(t, err.Error(), "\n")
				})
			}
			both.Wait()
		})
	}
}
