package membership

import (
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// A demand says whether this process wants the View after the current one, and which
// processes can be in it.
type demand struct {
	census  *census
	learner *learner
	least   int     // minimum number of members of a later View
	wanted  *wanted // nil if no View is wanted
}

// wanted is what we know about the View that we want.
type wanted struct {
	since time.Time
	lost  map[peer]bool // as the data plane says, whatever gossip says
	short time.Time     // since when too few members can be reached; zero if enough can
}

// want begins to ask for the next View, and reports whether it was not wanted yet.
func (d *demand) want(now time.Time) bool {
	if d.wanted != nil {
		return false
	}
	d.wanted = &wanted{since: now, lost: map[peer]bool{}}
	return true
}

// forgo records that the data plane has lost p.
func (d *demand) forgo(p peer) { d.wanted.lost[p] = true }

// withdraw ends the demand.
func (d *demand) withdraw() { d.wanted = nil }

// left returns the members of the View without those that the data plane has lost,
// and those of them that gossip sees.
func (d *demand) left() (members, up []peer) {
	members = slices.DeleteFunc(peersOf(d.learner.held.view.Members), func(p peer) bool { return d.wanted.lost[p] })
	return members, d.census.among(members)
}

// enough returns how many members must vote on a later View that we propose: a
// majority, or MinSize if that is more. Others' decisions need only a majority; see
// learner.quorum.
func (d *demand) enough() int {
	_, need := d.learner.quorum(nil)
	return max(need, d.least)
}

// measure records since when too few members for the wanted View can be reached.
func (d *demand) measure(now time.Time) {
	if d.wanted == nil {
		return
	}
	_, up := d.left()
	switch {
	case len(up) >= d.enough():
		d.wanted.short = time.Time{}
	case d.wanted.short.IsZero():
		d.wanted.short = now
	}
}

// outlook returns the members that the next View can have, and since when these
// are too few. unanswered are the names of those that owe our ballot an answer.
func (d *demand) outlook(unanswered []string) *outlook {
	if d.wanted == nil {
		return nil
	}
	_, up := d.left()
	o := &outlook{short: d.wanted.short, need: d.enough(), unanswered: unanswered}
	for _, member := range d.learner.held.view.Members {
		if slices.Contains(up, peerOf(member)) {
			o.reachable = append(o.reachable, member)
		} else {
			o.missing = append(o.missing, member)
		}
	}
	return o
}

// An outlook explains to a caller of Next why there is no View yet.
type outlook struct {
	reachable, missing []collective.Member
	need               int
	short              time.Time
	unanswered         []string
}
