package cluster_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/membership"
)

// If the settings of two machines contradict each other, both fail at once.
func TestMachinesThatDiffer(t *testing.T) {
	for name, test := range map[string]struct {
		a, b       cluster.Config
		aSay, bSay string
	}{
		"nodes":   {cluster.Config{Nodes: 2}, cluster.Config{Nodes: 3}, "--nodes is 2 here and 3 on b/0", "--nodes is 3 here and 2 on a/0"},
		"MinSize": {cluster.Config{Nodes: 2, MinSize: 2}, cluster.Config{Nodes: 2}, "MinSize is 2 here and 0 on b/0", "MinSize is 0 here and 2 on a/0"},
		"a setting of the program": {
			cluster.Config{Nodes: 2, Same: []membership.Setting{{Name: "--strategy", Value: "x"}}}, cluster.Config{Nodes: 2, Same: []membership.Setting{{Name: "--strategy", Value: "y"}}},
			"--strategy is x here and y on b/0", "--strategy is y here and x on a/0",
		},
		"streams": {cluster.Config{Nodes: 2, Streams: 2}, cluster.Config{Nodes: 2, Streams: 7}, "--streams is 2 here and 7 on b/0", "--streams is 7 here and 2 on a/0"},
		"rank 0":  {cluster.Config{Nodes: 2, Rank0: "b"}, cluster.Config{Nodes: 2, Rank0: "a"}, "--rank0 is b here and a on b/0", "--rank0 is a here and b on a/0"},
		"no host": {cluster.Config{Nodes: 2, Rank0: "c"}, cluster.Config{Nodes: 2}, "--rank0 c is not one of the machines a, b", "--rank0 c is not one of the machines a, b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.a.Node, test.a.Cluster = "a", t.Name()
			test.b.Node, test.b.Cluster = "b", t.Name()
			a := start(t, test.a, 1)[0]
			test.b.Join = []string{a.Addr().String()}
			b := start(t, test.b, 1)[0]
			var both sync.WaitGroup
			for node, say := range map[*cluster.Node]string{a: test.aSay, b: test.bSay} {
				both.Go(func() {
					_, err := node.Group(deadline(t))
					assert.ErrorIs(t, err, membership.ErrDiffer)
					assert.ErrorContains(t, err, say+": start every machine with the same command and version")
				})
			}
			both.Wait()
		})
	}
}

// Rank 0 is on the machine that the others join, or on the one that Rank0 names.
func TestWhereRank0Is(t *testing.T) {
	for want, rank0 := range map[string]string{"z": "", "y": "y"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c := cluster.Config{Cluster: t.Name(), Nodes: 3, Node: "z"}
			nodes := start(t, c, 1)
			c.Join, c.NodeRank = []string{nodes[0].Addr().String()}, 1
			c.Node = "x"
			nodes = append(nodes, start(t, c, 1)...)
			c.Node, c.Rank0 = "y", rank0 // one member decides for all
			nodes = append(nodes, start(t, c, 1)...)
			gs := groups(t, nodes)
			for _, g := range gs {
				require.Equal(t, want+"/0", g.View().Name(0))
			}
			next := regroup(t, nodes, gs)
			require.Equal(t, gs[0].View().Name(2), next[0].View().Name(2), "the order stays")
		})
	}
}

// One connection per pair equals the default.
func TestStreamsByDefault(t *testing.T) {
	c := cluster.Config{Cluster: t.Name(), Nodes: 2, Node: "a"}
	a := start(t, c, 1)
	c.Node, c.Join, c.Streams = "b", []string{a[0].Addr().String()}, 1
	require.Len(t, groups(t, append(a, start(t, c, 1)...)), 2)
}
