package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
)

// Slot is the place of one worker on a machine.
type Slot struct {
	Node  string
	Local int
}

// Waiting says who is there and who is missing before the first View.
type Waiting struct {
	Nodes        int                 // machines expected, at least 1
	Present      []collective.Member // expected processes that gossip sees, by (Node, Local)
	MissingNodes int                 // machines of which nothing was heard
	Missing      []Slot              // missing workers of machines that were heard of
	Unanswered   []string            // everybody is there, but these have not answered the vote yet
	Notes        []string            // contradictions between the members' settings
	Seeds        []string            // seeds that could not be joined, and why
}

// Complete reports whether all expected workers are there.
func (w Waiting) Complete() bool {
	return w.MissingNodes == 0 && len(w.Missing) == 0 && len(w.Present) > 0
}

// String is one line for a terminal.
func (w Waiting) String() string {
	parts := []string{fmt.Sprintf("%s here of %s", count(len(w.Present), "worker"), count(w.Nodes, "machine"))}
	if w.MissingNodes > 0 {
		parts = append(parts, "missing "+count(w.MissingNodes, "more machine"))
	}
	for _, s := range firstFew(w.Missing) {
		parts = append(parts, fmt.Sprintf("missing worker %d of %s", s.Local, s.Node))
	}
	if n := len(w.Missing) - shown; n > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", n))
	}
	if len(w.Unanswered) > 0 {
		parts = append(parts, "no answer yet from "+strings.Join(firstFew(w.Unanswered), ", "))
	}
	parts = append(parts, w.Notes...)
	for _, s := range w.Seeds {
		parts = append(parts, "cannot join "+s)
	}
	return strings.Join(parts, "; ")
}

// shown is how many of a list a line names.
const shown = 4

func firstFew[T any](s []T) []T { return s[:min(len(s), shown)] }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// A candidate is a process that gossip sees, with the number of machines that
// it expects itself.
type candidate struct {
	collective.Member
	Nodes int
}

// assemble returns the members of the first View in rank order, or nil while
// somebody is missing. It is a pure function of what gossip shows to self. Of
// too many machines it takes those with the lowest names. A place claimed twice
// counts as missing until one of the claimants is gone, which after a quick
// restart is a matter of seconds.
func assemble(self collective.Member, nodes int, seen map[peer]candidate) ([]collective.Member, Waiting) {
	w := Waiting{Nodes: max(nodes, 1)}
	machines := map[string][]collective.Member{}
	for _, c := range seen {
		switch {
		case c.Role == collective.Watcher:
		case nodes <= 1 && c.Node != self.Node:
		case max(c.Nodes, 1) != w.Nodes:
			w.Notes = append(w.Notes, fmt.Sprintf("%s expects %s, %s expects %d", c.Name, count(c.Nodes, "machine"), self.Name, w.Nodes))
		default:
			machines[c.Node] = append(machines[c.Node], c.Member)
		}
	}
	var whole, partial []string
	for node, ms := range machines {
		slices.SortFunc(ms, rankOrder)
		missing, note := gaps(node, ms)
		if note != "" {
			w.Notes = append(w.Notes, note)
		}
		if len(missing) == 0 {
			whole = append(whole, node)
			continue
		}
		partial = append(partial, node)
		w.Missing = append(w.Missing, missing...)
	}
	slices.Sort(whole)
	whole = whole[:min(len(whole), w.Nodes)]
	if len(whole) == w.Nodes {
		w.Missing, partial = nil, nil // of other machines, which are not needed
	}
	for _, node := range slices.Concat(whole, partial) {
		w.Present = append(w.Present, machines[node]...)
	}
	slices.SortFunc(w.Present, rankOrder)
	slices.SortFunc(w.Missing, func(a, b Slot) int {
		return rankOrder(collective.Member{Node: a.Node, Local: a.Local}, collective.Member{Node: b.Node, Local: b.Local})
	})
	slices.Sort(w.Notes)
	w.MissingNodes = max(0, w.Nodes-len(whole)-len(partial))
	if !w.Complete() {
		return nil, w
	}
	return w.Present, w
}

// gaps returns the places of one machine that are not filled by exactly one
// process. ms is sorted.
func gaps(node string, ms []collective.Member) (missing []Slot, note string) {
	size, at := ms[0].LocalSize, 0
	for i, m := range ms {
		switch {
		case m.LocalSize != size:
			note = fmt.Sprintf("%s says %s has %s, %s says %d", ms[0].Name, node, count(size, "worker"), m.Name, m.LocalSize)
		case m.Local >= size:
			note = fmt.Sprintf("%s is worker %d of %s, which has %d", m.Name, m.Local, node, size)
		case i > 0 && m.Local == ms[i-1].Local:
			note = fmt.Sprintf("%s and %s both are worker %d of %s: waiting until one is gone",
				peerOf(ms[i-1]).gossipName(), peerOf(m).gossipName(), m.Local, node)
		}
		if note != "" {
			return []Slot{{node, m.Local}}, note
		}
		for ; at < m.Local; at++ {
			missing = append(missing, Slot{node, at})
		}
		at++
	}
	for ; at < size; at++ {
		missing = append(missing, Slot{node, at})
	}
	return missing, note
}
