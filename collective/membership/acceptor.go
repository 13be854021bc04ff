package membership

import (
	"slices"
	"time"
)

// An acceptor is our vote in one instance. It remembers what is needed so that the
// instance is decided only once.
type acceptor struct {
	promised  ballot // nothing below it is accepted
	accepted  *vote
	since     time.Time // when it was accepted
	hopeless  bool      // accepted need not be finished
	disproved bool      // accepted was never decided
}

// bars reports whether we promised a ballot higher than b.
func (a *acceptor) bars(b ballot) bool { return b.less(a.promised) }

// prepare promises a ballot unless a higher one was promised, and returns the
// answer.
func (a *acceptor) prepare(b ballot) message {
	if a.bars(b) {
		return a.refusal()
	}
	a.promised = b
	return message{Kind: promise, Ballot: b, Vote: a.accepted}
}

// propose accepts a View unless a higher ballot was promised, and returns the
// answer.
func (a *acceptor) propose(now time.Time, v *vote) message {
	if a.bars(v.Ballot) {
		return a.refusal()
	}
	*a = acceptor{promised: v.Ballot, accepted: v, since: now}
	return message{Kind: accept, Ballot: v.Ballot}
}

func (a *acceptor) refusal() message { return message{Kind: refuse, Ballot: a.promised} }

// unfinished returns what we accepted if a proposer must finish it, or nil.
func (a *acceptor) unfinished() *vote {
	if a.hopeless {
		return nil
	}
	return a.accepted
}

// giveUp records that what we accepted need not be finished. disproved says that
// it was never decided.
func (a *acceptor) giveUp(disproved bool) { a.hopeless, a.disproved = true, disproved }

// outvotes reports whether we have accepted another first View under a higher
// ballot than that of a commit. That happens if the commit comes late from a process
// that has been given up since. But the commit wins if our View is certainly not
// decided: we found that out, or it would need the acceptance of the sender, which
// will never give it.
func (a *acceptor) outvotes(msg message) bool {
	v := a.accepted
	if v == nil || msg.Vote.View.Epoch != 1 || !msg.Ballot.less(v.Ballot) || v.View.Digest() == msg.Vote.View.Digest() {
		return false
	}
	return !a.disproved && !slices.Contains(v.voters(), msg.From)
}
