package membership

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
)

// A candidate is a process that gossip sees, with what it expects of the job.
type candidate struct {
	collective.Member
	wish
}

// A wish is what a process expects of its job. Config documents the fields.
type wish struct {
	Format   byte // of the meta that carries it
	Nodes    int
	NodeRank int
	Rank0    string
	Version  string
	Same     []Setting
}

// A Setting must have the same value in every process of a job. If it differs, an
// error shows name and values to the user.
type Setting struct{ Name, Value string }

// rankOrder is the order of ranks in a first View without NodeRank and Rank0.
func rankOrder(a, b collective.Member) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Local, b.Local), peerOf(a).compare(peerOf(b)))
}

// byRole puts workers before servers, so that servers do not change the ranks of
// workers.
func byRole(a, b collective.Member) int { return cmp.Compare(a.Role, b.Role) }

// A roster has the processes of one job that gossip shows, by machine, in rank
// order.
type roster map[string][]candidate

// newRoster accepts candidates in any order.
func newRoster(cs []candidate) roster {
	r := roster{}
	for _, c := range cs {
		r[c.Node] = append(r[c.Node], c)
	}
	for _, of := range r {
		slices.SortFunc(of, func(a, b candidate) int { return rankOrder(a.Member, b.Member) })
	}
	return r
}

// nodes returns the machines in rank order: first the machine that some process
// wants rank 0 on, if any, then by NodeRank, then by name. It depends only on the
// roster, so all processes get the same order.
func (r roster) nodes() []string {
	names := make([]string, 0, len(r))
	for name := range r {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(r.nodeRank(a), r.nodeRank(b)), cmp.Compare(a, b)) })
	if want := r.rank0(); want != "" {
		if i := find(names, want); i >= 0 {
			first := names[i]
			names = slices.Insert(slices.Delete(names, i, i+1), 0, first)
		}
	}
	return names
}

// nodeRank returns the NodeRank of a machine: the lowest of its processes.
func (r roster) nodeRank(node string) int {
	least := r[node][0].NodeRank
	for _, c := range r[node] {
		least = min(least, c.NodeRank)
	}
	return least
}

// rank0 returns the machine that the processes want rank 0 on, as they spell it,
// or "". Of several wishes it returns the first in alphabetical order.
func (r roster) rank0() string {
	want := ""
	for _, of := range r {
		for _, c := range of {
			if c.Rank0 != "" && (want == "" || c.Rank0 < want) {
				want = c.Rank0
			}
		}
	}
	return want
}

// find returns the index of the machine named want, else of the first one on a
// host named want, or -1.
func find(nodes []string, want string) int {
	if i := slices.Index(nodes, want); i >= 0 {
		return i
	}
	want, _, _ = strings.Cut(want, ".")
	return slices.IndexFunc(nodes, func(node string) bool {
		host := node
		if i := strings.LastIndexByte(node, '-'); i >= 0 {
			host = node[:i]
		}
		return strings.EqualFold(host, want)
	})
}
