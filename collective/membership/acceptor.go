package membership

import (
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// onPrepare promises a ballot unless a higher one was promised.
func (m *machine) onPrepare(now time.Time, msg message) {
	if msg.Ballot.less(m.acceptor.promised) {
		m.reply(msg, message{Kind: refuse, Ballot: m.acceptor.promised})
		return
	}
	m.promiseTo(now, msg.Ballot)
	m.reply(msg, message{Kind: promise, Ballot: msg.Ballot, Vote: m.acceptor.accepted})
}

// promiseTo drops our own lower ballot and gives the other proposer time to
// finish.
func (m *machine) promiseTo(now time.Time, b ballot) {
	m.acceptor.promised = b
	m.pace.saw(b)
	if m.run != nil && m.run.ballot.less(b) {
		m.run = nil
	}
	if b.By != m.id {
		m.pace.yield(now, m.random)
	}
}

// onPropose accepts a View unless a higher ballot was promised.
func (m *machine) onPropose(now time.Time, msg message) {
	if msg.Vote == nil || msg.Vote.Ballot != msg.Ballot || msg.Vote.View.Epoch != msg.Epoch {
		return
	}
	if msg.Ballot.less(m.acceptor.promised) {
		m.reply(msg, message{Kind: refuse, Ballot: m.acceptor.promised})
		return
	}
	if m.held == nil && rankOf(msg.Vote.View.Members, m.id) < 0 {
		return // a first View asks only its members
	}
	m.promiseTo(now, msg.Ballot)
	m.acceptor = acceptor{promised: msg.Ballot, accepted: msg.Vote, since: now}
	m.pace.hurry(now)
	m.reply(msg, message{Kind: accept, Ballot: msg.Ballot})
}

// consent lets a running job take this process in. The job's members decide. We
// have no vote, so there is nothing to remember.
func (m *machine) consent(msg message) {
	if msg.Vote != nil && rankOf(msg.Vote.View.Members, m.id) >= 0 {
		m.reply(msg, message{Kind: accept, Ballot: msg.Ballot})
	}
}

func (m *machine) reply(to, with message) {
	with.To, with.Job, with.Epoch = to.From, to.Job, to.Epoch
	m.send(with)
}

// onQuery sends our View to a process that holds an older one or none.
func (m *machine) onQuery(msg message) {
	switch {
	case m.held == nil || msg.Job != 0 && msg.Job != m.held.view.Job || msg.Epoch >= m.held.view.Epoch:
	case msg.Kind == watch:
		m.sendView(msg.From)
	default:
		m.tell(msg.From)
	}
}

// tell answers a process that is behind: with the View if it is a member, else
// with closed.
func (m *machine) tell(to peer) {
	if rankOf(m.held.view.Members, to) >= 0 {
		m.sendView(to)
		return
	}
	m.send(message{Kind: closed, To: to, Job: m.held.view.Job, Epoch: m.held.view.Epoch})
}

func (m *machine) sendView(to peer) {
	v := m.held.view
	m.send(message{Kind: commit, To: to, Job: v.Job, Epoch: v.Epoch, Ballot: m.held.asOf,
		Vote: &vote{Ballot: m.held.asOf, View: v}})
}

// onClosed records that the job continues without us: it started before we came,
// or a later View left us out.
func (m *machine) onClosed(msg message) {
	if m.held == nil || msg.Job == m.held.view.Job && msg.Epoch > m.held.view.Epoch {
		m.excluded = &exclusion{by: msg.From, job: msg.Job, epoch: msg.Epoch}
		m.run = nil
	}
}

// onCommit installs a decided View.
func (m *machine) onCommit(msg message) {
	if msg.Vote == nil {
		return
	}
	v := msg.Vote.View
	v.Self = rankOf(v.Members, m.id)
	switch {
	case v.Self < 0 && m.self.Role != collective.Watcher:
	case m.held != nil && (v.Job != m.held.view.Job || v.Epoch <= m.held.view.Epoch):
	case m.held == nil && m.outvoted(msg):
	default:
		m.install(v, msg.Ballot)
	}
}

// outvoted reports whether we have accepted another first View under a higher
// ballot than msg's. That happens if msg comes late from a process that has been
// given up since. But msg wins if our View is certainly not decided: we found that
// out, or it would need the acceptance of the sender, which will never give it.
func (m *machine) outvoted(msg message) bool {
	a := m.acceptor.accepted
	if a == nil || msg.Vote.View.Epoch != 1 || !msg.Ballot.less(a.Ballot) || a.View.Digest() == msg.Vote.View.Digest() {
		return false
	}
	return !m.acceptor.disproved && !slices.Contains(a.voters(), msg.From)
}

func (m *machine) install(v collective.View, asOf ballot) {
	m.held = &holding{view: v, asOf: asOf}
	m.acceptor = acceptor{}
	m.excluded, m.wanted, m.run = nil, nil, nil
	m.pace.installed()
	m.out.views = append(m.out.views, v)
}
