package membership

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// A Slot is the place of one worker on a machine.
type Slot struct {
	Node  string
	Local int
}

// Waiting lists the processes that are present and missing before the first View.
type Waiting struct {
	Nodes        int                 // machines expected, at least 1
	Workers      int                 // processes expected, if unknown machines have as many as this one
	Present      []collective.Member // expected processes that gossip sees, machine by machine
	MissingNodes int                 // machines that gossip has not seen
	Missing      []Slot              // missing workers of machines that it has seen
	Unanswered   []string            // all are present, but these have not answered the vote yet
	Notes        []string            // oddities that may pass
	Differ       []string            // contradictory settings, which end the wait after a second
	Connecting   bool                // the View is agreed, and its members connect
	Seeds        []Seed              // seeds that could not be joined, and why
	Trying       []string            // seeds, if none of them has answered or failed yet
	Visitors     []string            // processes that were turned away, and why
	Addr         netip.AddrPort      // gossip address of this process
}

// Complete reports whether all expected workers are present.
func (w Waiting) Complete() bool {
	return w.MissingNodes == 0 && len(w.Missing) == 0 && len(w.Present) > 0
}

// String returns one line for a terminal.
func (w Waiting) String() string { return w.After(0) }

// After is String with the time waited so far, unless that is 0.
func (w Waiting) After(waited time.Duration) string {
	joined := fmt.Sprintf("%d of %s joined", len(w.Present), count(w.Workers, "worker has", "workers have"))
	if waited > 0 {
		joined += ", " + span(waited)
	}
	text := fmt.Sprintf("waiting for %s (%s)", w.missing(), joined)
	if why := w.reasons(); len(why) > 0 {
		text += ": " + strings.Join(why, "; ")
	}
	return text
}

// missing names what is missing.
func (w Waiting) missing() string {
	var parts []string
	if w.MissingNodes > 0 {
		parts = append(parts, count(w.MissingNodes, "more machine", "more machines"))
	}
	for _, s := range firstFew(w.Missing) {
		parts = append(parts, fmt.Sprintf("worker %d on %s", s.Local, s.Node))
	}
	if n := len(w.Missing) - shown; n > 0 {
		parts = append(parts, count(n, "more worker", "more workers"))
	}
	switch {
	case w.Connecting:
		return "connections between the workers"
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case len(w.Unanswered) > 0:
		return "an answer from " + strings.Join(firstFew(w.Unanswered), ", ")
	}
	return "agreement"
}

// reasons returns the known reasons why they are missing.
func (w Waiting) reasons() []string {
	var list []string
	for _, s := range firstFew(w.Seeds) {
		list = append(list, s.String())
	}
	if len(w.Trying) > 0 {
		list = append(list, "no answer yet from "+strings.Join(firstFew(w.Trying), ", "))
	}
	list = append(list, w.Visitors...)
	list = append(list, w.Differ...)
	return append(list, w.Notes...)
}

// span formats a duration in whole seconds, or minutes and seconds.
func span(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	switch {
	case s < 120:
		return fmt.Sprintf("%d s", s)
	case s%60 == 0:
		return fmt.Sprintf("%d min", s/60)
	}
	return fmt.Sprintf("%d min %d s", s/60, s%60)
}

// shown is how many items of a list a line names.
const shown = 4

func firstFew[T any](s []T) []T { return s[:min(len(s), shown)] }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// assemble returns the members of the first View in rank order, or nil if one
// is missing or the processes contradict each other. It is a pure function of what
// gossip shows to self, so all processes that see the same get the same result. Of
// too many machines it takes the first in rank order. A place that two processes
// claim counts as missing until one of them is gone; after a quick restart that
// takes seconds.
func assemble(self candidate, seen map[peer]candidate) ([]collective.Member, Waiting) {
	w := Waiting{Nodes: max(self.Nodes, 1)}
	var ours, odd []candidate
	for _, c := range seen {
		switch {
		case c.Role == collective.Watcher:
		case self.Nodes <= 1 && c.Node != self.Node:
		case c.Format != self.Format || max(c.Nodes, 1) != w.Nodes:
			odd = append(odd, c)
		default:
			ours = append(ours, c)
		}
	}
	w.Differ = contradictions(self, append(odd, ours...))
	machines := newRoster(ours)
	var whole, partial []string
	for _, node := range machines.nodes() {
		missing, note := gaps(node, machines[node])
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
	whole = whole[:min(len(whole), w.Nodes)]
	if len(whole) == w.Nodes {
		w.Missing, partial = nil, nil // the other machines are not needed
	}
	var chosen []candidate
	for _, node := range slices.Concat(whole, partial) {
		chosen = append(chosen, machines[node]...)
	}
	for _, c := range chosen {
		w.Present = append(w.Present, c.Member)
	}
	slices.SortStableFunc(w.Present, byRole)
	slices.Sort(w.Notes)
	w.MissingNodes = max(0, w.Nodes-len(whole)-len(partial))
	w.Workers = len(w.Present) + len(w.Missing) + w.MissingNodes*self.LocalSize
	if !w.Complete() || len(contradictions(chosen[0], chosen[1:])) > 0 {
		return nil, w
	}
	if want := machines.rank0(); want != "" && find(whole, want) < 0 {
		w.Differ = append(w.Differ, fmt.Sprintf("--rank0 %s is not one of the machines %s", want, strings.Join(firstFew(whole), ", ")))
		return nil, w
	}
	return w.Present, w
}

// gaps returns the places of one machine that do not have exactly one process. ms
// is sorted.
func gaps(node string, ms []candidate) (missing []Slot, note string) {
	size, at := ms[0].LocalSize, 0
	for i, m := range ms {
		switch {
		case m.LocalSize != size:
			note = fmt.Sprintf("%s says %s has %s, %s says %d", ms[0].Name, node, count(size, "worker", "workers"), m.Name, m.LocalSize)
		case m.Local >= size:
			note = fmt.Sprintf("%s is worker %d of %s, which has %d", m.Name, m.Local, node, size)
		case i > 0 && m.Local == ms[i-1].Local:
			note = fmt.Sprintf("%s and %s are both worker %d of %s: waiting until one is gone",
				peerOf(ms[i-1].Member).gossipName(), peerOf(m.Member).gossipName(), m.Local, node)
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
