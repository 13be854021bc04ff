package membership

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// seenBy returns candidates as gossip shows them.
func seenBy(cs ...candidate) map[peer]candidate {
	seen := map[peer]candidate{}
	for _, c := range cs {
		seen[peerOf(c.Member)] = c
	}
	return seen
}

// single returns the only worker of a machine.
func single(node string, w wish) candidate {
	w.Format = metaVersion
	return candidate{collective.Member{Name: node + "/0", Nonce: 1, Node: node, LocalSize: 1}, w}
}

// Workers of all machines rank before servers.
func TestWorkersBeforeServers(t *testing.T) {
	var seen []candidate
	for _, node := range []string{"b", "a"} {
		for local, role := range []collective.Role{collective.Server, collective.Worker} {
			seen = append(seen, candidate{collective.Member{Name: node, Nonce: uint64(1 + local), Node: node, Local: local, LocalSize: 2, Role: role}, wish{Format: metaVersion, Nodes: 2}})
		}
	}
	members, _ := assemble(seen[0], seenBy(seen...))
	var order []string
	for _, m := range members {
		order = append(order, m.Node+" "+m.Role.String())
	}
	require.Equal(t, []string{"a worker", "b worker", "a server", "b server"}, order)
}

// The machine that the others join gets the first ranks, unless a process names
// another one. All members get the same order.
func TestOrderOfMachines(t *testing.T) {
	for _, test := range []struct {
		name string
		seen []candidate
		want []string
	}{
		{"by name", []candidate{single("b", wish{Nodes: 3}), single("c", wish{Nodes: 3}), single("a", wish{Nodes: 3})}, []string{"a", "b", "c"}},
		{"the joined one first", []candidate{single("z", wish{Nodes: 3}), single("b", wish{Nodes: 3, NodeRank: 1}), single("a", wish{Nodes: 3, NodeRank: 1})}, []string{"z", "a", "b"}},
		{"two were joined", []candidate{single("z", wish{Nodes: 3}), single("y", wish{Nodes: 3}), single("a", wish{Nodes: 3, NodeRank: 1})}, []string{"y", "z", "a"}},
		{"all joined", []candidate{single("b", wish{Nodes: 2, NodeRank: 1}), single("a", wish{Nodes: 2, NodeRank: 1})}, []string{"a", "b"}},
		{"an order is given", []candidate{single("a", wish{Nodes: 3, NodeRank: 2}), single("b", wish{Nodes: 3}), single("c", wish{Nodes: 3, NodeRank: 1})}, []string{"b", "c", "a"}},
		{"rank 0 by name", []candidate{single("a", wish{Nodes: 3}), single("b", wish{Nodes: 3, NodeRank: 1, Rank0: "c"}), single("c", wish{Nodes: 3, NodeRank: 1})}, []string{"c", "a", "b"}},
		{"rank 0 by host", []candidate{single("vm1-7f3a12", wish{Nodes: 2}), single("vm2-000001", wish{Nodes: 2, NodeRank: 1, Rank0: "VM2.lan"})}, []string{"vm2-000001", "vm1-7f3a12"}},
		{"two launchers of the host", []candidate{single("a-0", wish{Nodes: 3}), single("vm-2", wish{Nodes: 3, NodeRank: 1, Rank0: "vm"}), single("vm-1", wish{Nodes: 3, NodeRank: 1})}, []string{"vm-1", "a-0", "vm-2"}},
		{"a name is better than a host", []candidate{single("vm-1", wish{Nodes: 2}), single("vm", wish{Nodes: 2, NodeRank: 1, Rank0: "vm"})}, []string{"vm", "vm-1"}},
		{"too many: the first", []candidate{single("a", wish{Nodes: 2, NodeRank: 1}), single("b", wish{Nodes: 2, NodeRank: 1}), single("z", wish{Nodes: 2})}, []string{"z", "a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, self := range test.seen {
				rand.Shuffle(len(test.seen), func(i, j int) { test.seen[i], test.seen[j] = test.seen[j], test.seen[i] })
				members, w := assemble(self, seenBy(test.seen...))
				var nodes []string
				for _, m := range members {
					nodes = append(nodes, m.Node)
				}
				require.Equal(t, test.want, nodes, w)
				require.Empty(t, w.Differ)
			}
		})
	}
}

// Processes that contradict each other form no View, and each reports it from its
// own side.
func TestContradictions(t *testing.T) {
	old := single("b", wish{Nodes: 2})
	old.Format = 1
	for _, test := range []struct {
		name       string
		a, b       candidate
		aSay, bSay []string
	}{
		{"nodes", single("a", wish{Nodes: 2}), single("b", wish{Nodes: 3}), []string{"--nodes is 2 here and 3 on b/0"}, []string{"--nodes is 3 here and 2 on a/0"}},
		{"nodes of one machine", single("a", wish{Nodes: 2}), single("b", wish{}), []string{"--nodes is 2 here and 1 on b/0"}, nil},
		{"streams", single("a", wish{Nodes: 2, Same: []Setting{{"x", "1"}, {"--streams", "4"}}}), single("b", wish{Nodes: 2, Same: []Setting{{"--streams", "8"}, {"y", "2"}}}),
			[]string{"--streams is 4 here and 8 on b/0"}, []string{"--streams is 8 here and 4 on a/0"}},
		{"version", single("a", wish{Nodes: 2, Version: "v1"}), single("b", wish{Nodes: 3, Version: "v2"}),
			[]string{"the version is v1 here and v2 on b/0", "--nodes is 2 here and 3 on b/0"}, []string{"the version is v2 here and v1 on a/0", "--nodes is 3 here and 2 on a/0"}},
		{"format", single("a", wish{Nodes: 2, Version: "v2"}), old, []string{"the gossip format is 2 (version v2) here and 1 on b/0"}, []string{"the gossip format is 1 here and 2 (version v2) on a/0"}},
		{"rank 0", single("a", wish{Nodes: 2, Rank0: "a"}), single("b", wish{Nodes: 2, Rank0: "b"}), []string{"--rank0 is a here and b on b/0"}, []string{"--rank0 is b here and a on a/0"}},
		{"no such rank 0", single("a", wish{Nodes: 2, Rank0: "c"}), single("b", wish{Nodes: 2}), []string{"--rank0 c is not one of the machines a, b"}, []string{"--rank0 c is not one of the machines a, b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, side := range []struct {
				self candidate
				say  []string
			}{{test.a, test.aSay}, {test.b, test.bSay}} {
				members, w := assemble(side.self, seenBy(test.a, test.b))
				require.Equal(t, side.say, w.Differ)
				require.Equal(t, side.say == nil, members != nil)
			}
		})
	}
}

// Contradictions of other jobs do not affect processes that agree.
func TestStrangersDoNotKeepAJobFromForming(t *testing.T) {
	a, b, odd := single("a", wish{Nodes: 2}), single("b", wish{Nodes: 2}), single("c", wish{Nodes: 3, Rank0: "c"})
	old, watcher := single("d", wish{Nodes: 2}), single("e", wish{})
	old.Format, watcher.Role = 1, collective.Watcher
	members, w := assemble(a, seenBy(a, b, odd, old, watcher))
	require.Len(t, members, 2)
	require.Equal(t, []string{"--nodes is 2 here and 3 on c/0", "the gossip format is 2 here and 1 on d/0"}, w.Differ)
}

// A third process reports two others that want rank 0 on different machines.
func TestContradictionsOfOthers(t *testing.T) {
	a, b, c := single("a", wish{Nodes: 3}), single("b", wish{Nodes: 3, Rank0: "b"}), single("c", wish{Nodes: 3, Rank0: "c"})
	members, w := assemble(a, seenBy(a, b, c))
	require.Nil(t, members)
	require.Equal(t, []string{"--rank0 is b on b/0 and c on c/0"}, w.Differ)
}
