package membership

import (
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// A machine is one process's part in the view protocol. It has no clock, no
// socket and no goroutine: time and messages are its input, messages and Views
// its output. It is not safe for concurrent use.
//
// The proposer, acceptor and learner are those of Paxos. Each part changes only its
// own state and adds to the output, except that the proposer also tells the acceptor
// when a View need not be finished. The machine passes on whatever else one part
// must know of another, such as that a View was installed.
type machine struct {
	id       peer
	census   *census   // the processes that gossip shows
	learner  *learner  // which View was decided
	inquiry  *inquiry  // asks others for it
	acceptor *acceptor // our vote in the instance of the next epoch
	demand   *demand   // for the next View
	proposer *proposer // our own ballots
	judge    *judge    // why there can be no first View
	out      *output
}

func newMachine(now time.Time, self candidate, random func() uint64) *machine {
	s := newCensus(self)
	out := &output{id: s.id}
	l := &learner{census: s, out: out}
	a := &acceptor{}
	d := &demand{census: s, learner: l}
	return &machine{
		id: s.id, census: s, learner: l, acceptor: a, demand: d, out: out,
		inquiry:  &inquiry{census: s, learner: l, out: out, at: now.Add(askFirst), gap: askFirst},
		proposer: &proposer{id: s.id, random: random, census: s, learner: l, acceptor: a, demand: d, out: out},
		judge:    &judge{census: s, learner: l},
	}
}

// Up reports that gossip sees c.
func (m *machine) Up(now time.Time, c candidate) {
	if m.census.add(c) {
		m.inquiry.hurry(now)
	}
	m.settle(now)
}

// Down reports that gossip has given up p. It may be wrong.
func (m *machine) Down(now time.Time, p peer) {
	if p == m.id {
		return
	}
	m.census.remove(p)
	m.learner.readmit(p)
	m.proposer.without(p)
	m.settle(now)
}

// Tick passes the time: unanswered messages are sent again.
func (m *machine) Tick(now time.Time) {
	m.consider(now)
	m.settle(now)
	if !m.content() {
		m.inquiry.ask(now)
	}
}

// Receive handles a message of another process.
func (m *machine) Receive(now time.Time, msg message) {
	if msg.To != m.id || msg.From == m.id {
		return
	}
	m.handle(now, msg)
	m.settle(now)
}

// Next asks for the View after the current one, without the lost.
func (m *machine) Next(now time.Time, lost []peer) {
	if m.learner.held == nil || m.census.watches() {
		return
	}
	if m.demand.want(now) {
		m.inquiry.hurry(now)
	}
	for _, p := range lost {
		if p != m.id {
			m.forgo(p)
		}
	}
	m.settle(now)
}

// Gone reports that p's address refuses connections. A wanted View need not wait
// for p.
func (m *machine) Gone(now time.Time, p peer) {
	if m.demand.wanted != nil && p != m.id {
		m.forgo(p)
		m.settle(now)
	}
}

func (m *machine) forgo(p peer) {
	m.demand.forgo(p)
	m.proposer.without(p)
}

// Withdraw takes back the demand for a View, because no caller waits for it any
// more. We still vote on what others propose.
func (m *machine) Withdraw() {
	if m.learner.held != nil {
		m.demand.withdraw()
		m.proposer.stop()
	}
}

// Rejected reports that all seeds rejected this process.
func (m *machine) Rejected(seeds []Seed) { m.judge.rejectedBy(seeds) }

// Unfit ends the wait for the first View because of this machine.
func (m *machine) Unfit(why error) {
	m.judge.unfit(why)
	m.enforce()
}

// Refuse ends the wait for the first View because of a visitor, and reports whether
// it did; see judge.refuse.
func (m *machine) Refuse(v visitor) bool {
	refused := m.judge.refuse(v)
	m.enforce()
	return refused
}

// consider ends the wait for the first View if there can be none.
func (m *machine) consider(now time.Time) {
	m.judge.consider(now)
	m.enforce()
}

// enforce makes sure that we form no View after a verdict.
func (m *machine) enforce() {
	if m.judge.verdict != nil {
		m.proposer.stop()
	}
}

// idle reports whether no Tick is needed.
func (m *machine) idle() bool { return m.content() && m.proposer.run == nil }

// content reports whether this process waits for no View. A Watcher always waits.
func (m *machine) content() bool {
	return m.learner.held != nil && m.demand.wanted == nil && !m.census.watches()
}

// drain returns the messages to send and the Views to hand out, in order.
func (m *machine) drain() ([]message, []collective.View) { return m.out.drain(), m.learner.newViews() }

// outlook returns the outlook for a wanted View, or nil.
func (m *machine) outlook() *outlook { return m.demand.outlook(m.proposer.unanswered()) }

// waiting returns what the first View still lacks.
func (m *machine) waiting() Waiting {
	members, w := m.census.assemble()
	switch {
	case m.proposer.run != nil:
		w.Unanswered = m.proposer.unanswered()
	case len(members) > 0 && peerOf(members[0]) != m.id:
		w.Unanswered = []string{members[0].Name}
	}
	return w
}

// settle starts or continues our own ballot, and handles the messages that we send
// to ourselves, until there are no more.
func (m *machine) settle(now time.Time) {
	m.demand.measure(now)
	m.lead(now)
	for msg, ok := m.out.next(); ok; msg, ok = m.out.next() {
		m.handle(now, msg)
		m.lead(now)
	}
}

// lead lets the proposer act, unless we have no part in the next View.
func (m *machine) lead(now time.Time) {
	if !m.census.watches() && m.learner.excluded == nil && m.judge.verdict == nil {
		m.proposer.advance(now)
	}
}
