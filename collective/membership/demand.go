package membership

import (
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// Next asks for the View after the current one, without the lost.
func (m *machine) Next(now time.Time, lost []peer) {
	if m.held == nil || m.self.Role == collective.Watcher {
		return
	}
	if m.wanted == nil {
		m.wanted = &demand{since: now, lost: map[peer]bool{}}
		m.pace.hurry(now)
	}
	for _, p := range lost {
		if p != m.id {
			m.forgo(now, p)
		}
	}
	m.settle(now)
}

// Gone reports that p's address refuses connections. A wanted View need not wait
// for p.
func (m *machine) Gone(now time.Time, p peer) {
	if m.held != nil && m.wanted != nil && p != m.id {
		m.forgo(now, p)
		m.settle(now)
	}
}

func (m *machine) forgo(now time.Time, p peer) {
	m.wanted.lost[p] = true
	m.withoutPeer(now, p)
}

// Withdraw takes back the demand for a View, because no caller waits for it any
// more. We still vote on what others propose.
func (m *machine) Withdraw() {
	if m.held != nil {
		m.wanted, m.run = nil, nil
	}
}

// left returns the members of the View without those that the data plane has lost,
// and those of them that gossip sees.
func (m *machine) left() (members, up []peer) {
	members = slices.DeleteFunc(peersOf(m.held.view.Members), func(p peer) bool { return m.wanted.lost[p] })
	return members, m.upAmong(members)
}

// enough returns how many members must vote on a later View that we propose: a
// majority, or MinSize if that is more. Others' decisions need only a majority; see
// quorum.
func (m *machine) enough() int {
	_, need := m.quorum(nil)
	return max(need, m.least)
}

// measure records since when too few members for the wanted View can be reached.
func (m *machine) measure(now time.Time) {
	if m.held == nil || m.wanted == nil {
		return
	}
	_, up := m.left()
	switch {
	case len(up) >= m.enough():
		m.wanted.short = time.Time{}
	case m.wanted.short.IsZero():
		m.wanted.short = now
	}
}

// outlook returns the members that the next View can have, and since when these
// are too few.
func (m *machine) outlook() *outlook {
	if m.held == nil || m.wanted == nil {
		return nil
	}
	_, up := m.left()
	o := &outlook{short: m.wanted.short, need: m.enough()}
	for _, member := range m.held.view.Members {
		if slices.Contains(up, peerOf(member)) {
			o.reachable = append(o.reachable, member)
		} else {
			o.missing = append(o.missing, member)
		}
	}
	if m.run != nil {
		for _, p := range m.run.unanswered() {
			if p != m.id {
				o.unanswered = append(o.unanswered, p.Name)
			}
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
