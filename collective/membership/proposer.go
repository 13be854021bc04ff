package membership

import (
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// A proposer runs our own ballots.
type proposer struct {
	id       peer
	random   func() uint64 // draws the Job and the length of pauses
	census   *census
	learner  *learner
	acceptor *acceptor
	demand   *demand
	out      *output
	timer    ballotTimer
	run      *run // our ballot, or nil
}

// advance continues our ballot, or starts one if it is our turn.
func (o *proposer) advance(now time.Time) {
	switch {
	case o.run != nil:
		o.press(now)
	case o.learner.held != nil && o.demand.wanted == nil || now.Before(o.timer.hold):
	case o.learner.held == nil:
		o.leadFirst(now)
	default:
		o.leadNext(now)
	}
}

// leadFirst starts a ballot for the first View if we are the lowest of the complete
// set. It also starts one to finish a View that was never committed, if it is our
// turn among the survivors: the lowest first, then the others one by one.
func (o *proposer) leadFirst(now time.Time) {
	var asked []peer
	if v := o.acceptor.unfinished(); v != nil {
		left := o.census.among(peersOf(v.View.Members))
		turn := slices.Index(left, o.id)
		if o.census.alive(v.Ballot.By) {
			turn++
		}
		if now.Sub(o.acceptor.since) >= time.Duration(turn)*patience {
			asked = left
		}
	}
	members, _ := o.census.assemble()
	if len(members) > 0 && peerOf(members[0]) == o.id {
		asked = union(asked, peersOf(members))
	} else {
		members = nil
	}
	if len(asked) > 0 {
		o.begin(now, asked, members)
	}
}

// leadNext starts a ballot for the next View if we are the lowest live rank. If that
// rank does not, because it wants no View yet, the others follow one by one. If too
// few are left without the lost, the lost are asked too: they may be alive although
// their connections broke.
func (o *proposer) leadNext(now time.Time) {
	asked, left := o.demand.left()
	if len(left) < o.demand.enough() {
		asked = peersOf(o.learner.held.view.Members)
		left = o.census.among(asked)
	}
	turn := min(time.Duration(slices.Index(left, o.id))*turnGap, turnMost)
	if len(left) >= o.demand.enough() && now.Sub(o.demand.wanted.since) >= turn {
		o.begin(now, asked, nil)
	}
}

func (o *proposer) begin(now time.Time, asked []peer, fresh []collective.Member) {
	o.timer.round++
	o.run = &run{
		ballot: ballot{Round: o.timer.round, By: o.id}, asked: asked, fresh: fresh,
		promises: map[peer]*vote{}, since: now,
	}
	o.run.rearm(now, resendFirst)
	for _, p := range asked {
		o.sendPrepare(p)
	}
}

func (o *proposer) sendPrepare(to peer) {
	job, epoch := o.learner.instance()
	o.out.send(message{Kind: prepare, To: to, Job: job, Epoch: epoch, Ballot: o.run.ballot})
}

func (o *proposer) sendPropose(to peer) {
	job, epoch := o.learner.instance()
	o.out.send(message{Kind: propose, To: to, Job: job, Epoch: epoch, Ballot: o.run.ballot, Vote: o.run.motion.vote})
}

// press continues a run as time passes: it chooses after it has waited long enough,
// and repeats unanswered messages.
func (o *proposer) press(now time.Time) {
	r := o.run
	if r.motion == nil && o.heardEnough(now) {
		o.choose(now)
		return
	}
	if o.learner.held != nil && now.Sub(r.since) >= 2*grace {
		o.run = nil // a process fell silent or came back: start over
		return
	}
	if now.Before(r.resend.at) {
		return
	}
	r.rearm(now, 2*r.resend.gap)
	for _, p := range r.unanswered() {
		if r.motion == nil {
			o.sendPrepare(p)
		} else {
			o.sendPropose(p)
		}
	}
}

// heardEnough reports whether the promises suffice to choose a View.
func (o *proposer) heardEnough(now time.Time) bool {
	r := o.run
	if o.learner.held == nil {
		return len(r.promises) == len(r.asked)
	}
	late := now.Sub(r.since) >= grace
	return len(r.promises) >= o.demand.enough() && (late || len(o.census.among(r.unanswered())) == 0)
}

func (o *proposer) onPromise(msg message) {
	r := o.run
	if r == nil || msg.Ballot != r.ballot || r.motion != nil || !slices.Contains(r.asked, msg.From) {
		return
	}
	r.promises[msg.From] = msg.Vote
	if msg.Vote == nil || o.learner.held != nil {
		return
	}
	// Others may know whether that View was decided: hear them too.
	for _, p := range o.census.among(peersOf(msg.Vote.View.Members)) {
		if !slices.Contains(r.asked, p) {
			r.asked = append(r.asked, p)
			o.sendPrepare(p)
		}
	}
}

// onAccept counts an acceptance. Once it decides our motion, onAccept ends the run,
// tells the View's members, and returns the vote; otherwise nil.
func (o *proposer) onAccept(msg message) *vote {
	r := o.run
	if r == nil || msg.Ballot != r.ballot || r.motion == nil {
		return nil
	}
	r.motion.accepted[msg.From] = true
	if !r.motion.done() {
		return nil
	}
	o.run = nil
	decided := r.motion.vote
	for _, p := range peersOf(decided.View.Members) {
		if p != o.id {
			o.out.send(message{Kind: commit, To: p, Job: decided.View.Job, Epoch: decided.View.Epoch, Ballot: r.ballot, Vote: decided})
		}
	}
	return decided
}

func (o *proposer) onRefuse(now time.Time, msg message) {
	o.timer.saw(msg.Ballot)
	if o.run != nil && o.run.ballot.less(msg.Ballot) {
		o.run = nil
		o.timer.yield(now, o.random)
	}
}

// outranked drops our own lower ballot after we have promised b, and gives another
// proposer time to finish.
func (o *proposer) outranked(now time.Time, b ballot) {
	o.timer.saw(b)
	if o.run != nil && o.run.ballot.less(b) {
		o.run = nil
	}
	if b.By != o.id {
		o.timer.yield(now, o.random)
	}
}

// without ends a run that waits for p, which is gone. A first View starts over,
// because the set has changed. A later View need not, until it is proposed.
func (o *proposer) without(p peer) {
	r := o.run
	if r == nil || !slices.Contains(r.asked, p) {
		return
	}
	if o.learner.held == nil || r.motion != nil && slices.Contains(r.motion.await, p) {
		o.run = nil
		return
	}
	if !r.promised(p) {
		r.asked = slices.DeleteFunc(r.asked, func(q peer) bool { return q == p })
	}
}

// stop drops our ballot.
func (o *proposer) stop() { o.run = nil }

// installed starts the next instance.
func (o *proposer) installed() {
	o.run = nil
	o.timer.installed()
}

// silent returns the others that gossip shows and that have not answered our ballot although we
// repeated it.
func (o *proposer) silent() []peer {
	if o.run == nil || o.run.resend.gap <= resendFirst {
		return nil
	}
	return slices.DeleteFunc(o.census.among(o.run.unanswered()), func(p peer) bool { return p == o.id })
}

// unanswered returns the names of the others that owe our ballot an answer.
func (o *proposer) unanswered() (names []string) {
	if o.run == nil {
		return nil
	}
	for _, p := range o.run.unanswered() {
		if p != o.id {
			names = append(names, p.Name)
		}
	}
	return names
}

func union(a, b []peer) []peer {
	for _, p := range b {
		if !slices.Contains(a, p) {
			a = append(a, p)
		}
	}
	return a
}
