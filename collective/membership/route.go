package membership

import (
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// handle passes a message to the parts of the machine that it concerns.
func (m *machine) handle(now time.Time, msg message) {
	switch msg.Kind {
	case commit:
		m.onCommit(msg)
	case closed:
		if m.learner.onClosed(msg) {
			m.proposer.stop()
		}
	case query, watch:
		m.learner.onQuery(msg)
	default:
		m.onVote(now, msg)
	}
}

// onVote handles the messages that belong to one instance.
func (m *machine) onVote(now time.Time, msg message) {
	job, epoch := m.learner.instance()
	held := m.learner.held
	asks := msg.Kind == prepare || msg.Kind == propose
	switch {
	case msg.Job == job && msg.Epoch == epoch:
		m.onCurrent(now, msg)
	case held != nil && msg.Epoch <= held.view.Epoch:
		if asks { // the sender is behind; stale answers need none
			m.learner.reply(msg.From)
		}
	case held != nil && msg.Job == job:
		m.out.send(message{Kind: query, To: msg.From, Job: job, Epoch: held.view.Epoch})
	}
}

func (m *machine) onCurrent(now time.Time, msg message) {
	switch msg.Kind {
	case prepare:
		m.onPrepare(now, msg)
	case propose:
		m.onPropose(now, msg)
	case promise:
		m.proposer.onPromise(msg)
	case accept:
		if decided := m.proposer.onAccept(msg); decided != nil {
			m.decide(decided)
		}
	case refuse:
		m.proposer.onRefuse(now, msg)
	}
}

func (m *machine) onPrepare(now time.Time, msg message) {
	answer := m.acceptor.prepare(msg.Ballot)
	if answer.Kind == promise {
		m.proposer.outranked(now, msg.Ballot)
	}
	m.out.reply(msg, answer)
}

func (m *machine) onPropose(now time.Time, msg message) {
	if msg.Vote == nil || msg.Vote.Ballot != msg.Ballot || msg.Vote.View.Epoch != msg.Epoch {
		return
	}
	if !m.acceptor.bars(msg.Ballot) && m.learner.held == nil && rankOf(msg.Vote.View.Members, m.id) < 0 {
		return // a first View asks only its members
	}
	answer := m.acceptor.propose(now, msg.Vote)
	if answer.Kind == accept {
		m.proposer.outranked(now, msg.Ballot)
		m.inquiry.hurry(now)
	}
	m.out.reply(msg, answer)
}

// onCommit installs a View that others decided.
func (m *machine) onCommit(msg message) {
	v, ok := m.learner.committed(msg)
	if ok && (m.learner.held != nil || !m.acceptor.outvotes(msg)) {
		m.install(v, msg.Ballot)
	}
}

// decide installs the View that our motion decided.
func (m *machine) decide(d *vote) {
	v := d.View
	if v.Self = rankOf(v.Members, m.id); v.Self < 0 { // we finished a View without us
		m.learner.exclude(peerOf(v.Members[0]), v.Job, v.Epoch)
		return
	}
	m.install(v, d.Ballot)
}

// install begins the next instance.
func (m *machine) install(v collective.View, asOf ballot) {
	m.learner.install(v, asOf)
	*m.acceptor = acceptor{}
	m.demand.withdraw()
	m.proposer.installed()
}
