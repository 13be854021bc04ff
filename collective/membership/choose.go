package membership

import (
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// choose proposes a View under our ballot: the newest reported one that may have
// been decided, or else a new one.
func (m *machine) choose(now time.Time) {
	r := m.run
	r.since = now
	r.rearm(now, resendFirst)
	open := m.undecided()
	if i := slices.IndexFunc(open, m.worthFinishing); i >= 0 {
		m.propose(open[i].View)
		return
	}
	view, ok := m.compose()
	if !ok { // nothing to finish, and somebody is missing
		m.acceptor.hopeless, m.acceptor.disproved = true, len(open) == 0
		m.run = nil
		m.pace.pause(now, patience)
		return
	}
	m.propose(view)
}

// undecided returns the reported Views that may have been decided, highest ballot
// first.
func (m *machine) undecided() []*vote {
	var open []*vote
	for _, v := range m.run.promises {
		if v != nil && m.mayBeDecided(v) {
			open = append(open, v)
		}
	}
	slices.SortFunc(open, func(a, b *vote) int { return b.Ballot.compare(a.Ballot) })
	return open
}

// worthFinishing reports whether v is of use. A first View that most of its members
// did not survive is not: the survivors should wait until the others are restarted.
func (m *machine) worthFinishing(v *vote) bool {
	return m.held != nil || m.heardOf(v.View) > len(v.View.Members)/2
}

// mayBeDecided reports whether enough processes may have accepted v under its
// ballot: those whose promise we lack, and those that reported it or a higher one.
// All others have now promised never to accept it.
func (m *machine) mayBeDecided(v *vote) bool {
	voters, need := m.quorum(v)
	possible := 0
	for _, p := range voters {
		last, promised := m.run.promises[p]
		if !promised || last != nil && !last.Ballot.less(v.Ballot) {
			possible++
		}
	}
	return possible >= need
}

// heardOf counts the members of v that have promised.
func (m *machine) heardOf(v collective.View) (n int) {
	for _, p := range peersOf(v.Members) {
		if _, ok := m.run.promises[p]; ok {
			n++
		}
	}
	return n
}

// quorum returns the processes that decide and how many of them must agree: for a
// first View v all its voters, later a majority of the previous View.
func (m *machine) quorum(v *vote) (voters []peer, need int) {
	if m.held != nil {
		voters = peersOf(m.held.view.Members)
		return voters, len(voters)/2 + 1
	}
	voters = v.voters()
	return voters, len(voters)
}

// compose makes a new View of the processes that promised.
func (m *machine) compose() (collective.View, bool) {
	r := m.run
	if m.held == nil {
		job := m.random()
		for job == 0 {
			job = m.random()
		}
		return collective.View{Job: job, Epoch: 1, Members: r.fresh}, len(r.fresh) > 0
	}
	v := collective.View{Job: m.held.view.Job, Epoch: m.held.view.Epoch + 1}
	for _, member := range m.held.view.Members {
		if _, ok := r.promises[peerOf(member)]; ok {
			v.Members = append(v.Members, member)
		}
	}
	return v, true
}

// propose asks the processes that promised to accept view. Members that gossip has
// given up have no vote, because they cannot be waited for.
func (m *machine) propose(view collective.View) {
	r := m.run
	view.Self = 0
	v := &vote{Ballot: r.ballot, View: view}
	d := &motion{vote: v, accepted: map[peer]bool{}}
	absent := make([]bool, len(view.Members))
	for i, p := range peersOf(view.Members) {
		if _, ok := r.promises[p]; ok {
			d.await = append(d.await, p)
		} else {
			absent[i] = true
		}
	}
	d.targets = slices.Clone(d.await)
	if m.held == nil && len(d.await) < len(absent) {
		v.Absent = absent
	}
	d.voters, d.need = m.quorum(v)
	if m.held != nil {
		d.need = m.enough()
		for _, p := range d.voters {
			if _, ok := r.promises[p]; ok {
				d.targets = union(d.targets, []peer{p})
			}
		}
	}
	r.motion = d
	for _, p := range d.targets {
		m.sendPropose(p)
	}
}
