package membership

import (
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// choose proposes a View under our ballot: the newest reported one that may have
// been decided, or else a new one.
func (o *proposer) choose(now time.Time) {
	r := o.run
	r.since = now
	r.rearm(now, resendFirst)
	open := o.undecided()
	if i := slices.IndexFunc(open, o.worthFinishing); i >= 0 {
		o.propose(open[i].View)
		return
	}
	view, ok := o.compose()
	if !ok { // nothing to finish, and a process is missing
		o.acceptor.giveUp(len(open) == 0)
		o.run = nil
		o.timer.pause(now, patience)
		return
	}
	o.propose(view)
}

// undecided returns the reported Views that may have been decided, highest ballot
// first.
func (o *proposer) undecided() []*vote {
	var open []*vote
	for _, v := range o.run.promises {
		if v == nil {
			continue
		}
		if voters, need := o.learner.quorum(v); o.run.mayBeDecided(v, voters, need) {
			open = append(open, v)
		}
	}
	slices.SortFunc(open, func(a, b *vote) int { return b.Ballot.compare(a.Ballot) })
	return open
}

// worthFinishing reports whether v is of use. A first View that most of its members
// did not survive is not: the survivors should wait until the others are restarted.
func (o *proposer) worthFinishing(v *vote) bool {
	return o.learner.held != nil || o.run.heardOf(v.View) > len(v.View.Members)/2
}

// compose makes a new View of the processes that promised.
func (o *proposer) compose() (collective.View, bool) {
	r := o.run
	held := o.learner.held
	if held == nil {
		job := o.random()
		for job == 0 {
			job = o.random()
		}
		return collective.View{Job: job, Epoch: 1, Members: r.fresh}, len(r.fresh) > 0
	}
	v := collective.View{Job: held.view.Job, Epoch: held.view.Epoch + 1}
	for _, member := range held.view.Members {
		if r.promised(peerOf(member)) {
			v.Members = append(v.Members, member)
		}
	}
	return v, true
}

// propose asks the processes that promised to accept view. Members that gossip has
// given up have no vote, because they cannot be waited for.
func (o *proposer) propose(view collective.View) {
	r := o.run
	view.Self = 0
	v := &vote{Ballot: r.ballot, View: view}
	d := &motion{vote: v, accepted: map[peer]bool{}}
	absent := make([]bool, len(view.Members))
	for i, p := range peersOf(view.Members) {
		if r.promised(p) {
			d.await = append(d.await, p)
		} else {
			absent[i] = true
		}
	}
	d.targets = slices.Clone(d.await)
	if o.learner.held == nil && len(d.await) < len(absent) {
		v.Absent = absent
	}
	d.voters, d.need = o.learner.quorum(v)
	if o.learner.held != nil {
		d.need = o.demand.enough()
		for _, p := range d.voters {
			if r.promised(p) {
				d.targets = union(d.targets, []peer{p})
			}
		}
	}
	r.motion = d
	for _, p := range d.targets {
		o.sendPropose(p)
	}
}
