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

// A wish is what a process expects of the job that it wants to be in. Config
// says what the fields mean.
type wish struct {
	Format   byte // of the meta that carries it
	Nodes    int
	NodeRank int
	Rank0    string
	Version  string
	Same     []Setting
}

// A Setting is something that every process of a job must have the same value
// of. Both are shown to the user where they differ.
type Setting struct{ Name, Value string }

// rankOrder is the order of ranks in a first View where nobody has a wish.
func rankOrder(a, b collective.Member) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Local, b.Local), peerOf(a).compare(peerOf(b)))
}

// byRole puts workers before servers, so that the ranks of the workers are the
// same with and without servers.
func byRole(a, b collective.Member) int { return cmp.Compare(a.Role, b.Role) }

// A roster is the processes that gossip shows of one job, by machine. The
// processes of a machine are in rank order.
type roster map[string][]candidate

// newRoster is a roster of candidates in any order.
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

// nodes are the machines in the order of their ranks: that of rank 0, if some
// process names one, then by NodeRank, then by name. The order does not depend
// on who asks.
func (r roster) nodes() []string {
	names := make([]string, 0, len(r))
	for name := range r {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(r.place(a), r.place(b)), cmp.Compare(a, b)) })
	if want := r.rank0(); want != "" {
		if i := find(names, want); i >= 0 {
			first := names[i]
			names = slices.Insert(slices.Delete(names, i, i+1), 0, first)
		}
	}
	return names
}

// place is the NodeRank of a machine.
func (r roster) place(node string) int {
	least := r[node][0].NodeRank
	for _, c := range r[node] {
		least = min(least, c.NodeRank)
	}
	return least
}

// rank0 is the machine that the processes want rank 0 on, in their words; "" if
// none of them says. Of several wishes it is the first in the alphabet.
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

// find is the index of the machine that want means, or -1: the one of that name,
// else the first on the host of that name.
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
