package membership

import (
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// A machine is one process's part in the view protocol. It has no clock, no
// socket and no goroutine: time and messages are its input, messages and Views
// its output. It is not safe for concurrent use.
type machine struct {
	self   candidate
	id     peer
	least  int           // members that a later View must have, whatever the majority
	random func() uint64 // draws the Job and the length of pauses

	seen     map[peer]candidate // whom gossip believes alive, this process included
	acceptor acceptor           // our vote in the instance of the next epoch
	held     *holding           // the View we are in, or nil
	excluded *exclusion         // who told us that the job goes on without us, or nil
	odd      time.Time          // since when settings contradict; zero while they do not
	rejected []Seed             // all seeds, if all have turned us away
	verdict  error              // there can be no View, and why
	wanted   *demand            // the caller asks for the next View, or nil
	run      *run               // the ballot that we propose under, or nil
	pace     pace
	out      output
}

// An acceptor is what must be remembered for an instance to be decided once.
type acceptor struct {
	promised  ballot // nothing below it is accepted
	accepted  *vote
	since     time.Time // when it was accepted
	hopeless  bool      // we found that accepted need not be finished,
	disproved bool      // and even that it was never decided
}

// A holding is an installed View and the ballot as of which it was decided:
// its holder has accepted nothing above.
type holding struct {
	view collective.View
	asOf ballot
}

type exclusion struct {
	by    peer
	job   uint64
	epoch uint64 // of the View that by holds
}

// A demand for a View after the one that is held.
type demand struct {
	since time.Time
	lost  map[peer]bool // by the data plane's word, whatever gossip says
	short time.Time     // since when too few are in reach; zero while there are enough
}

// output collects what the inputs bring about until it is taken.
type output struct {
	local    []message // to this process itself, handled before an input returns
	messages []message
	views    []collective.View
}

func newMachine(now time.Time, self candidate, random func() uint64) *machine {
	m := &machine{
		self: self, id: peerOf(self.Member), random: random,
		seen: map[peer]candidate{},
		pace: newPace(now),
	}
	m.seen[m.id] = self
	return m
}

// Up says that gossip sees c.
func (m *machine) Up(now time.Time, c candidate) {
	if _, known := m.seen[peerOf(c.Member)]; !known {
		m.pace.hurry(now)
	}
	m.seen[peerOf(c.Member)] = c
	m.settle(now)
}

// Down says that gossip has given p up. It may be wrong.
func (m *machine) Down(now time.Time, p peer) {
	if p == m.id {
		return
	}
	delete(m.seen, p)
	if m.held == nil && m.excluded != nil && m.excluded.by == p {
		m.excluded = nil // the job that we missed may be over
	}
	m.withoutPeer(now, p)
	m.settle(now)
}

// Tick lets time pass: lost messages are sent again.
func (m *machine) Tick(now time.Time) {
	m.judge(now)
	m.settle(now)
	m.ask(now)
}

// Receive handles a message of another process.
func (m *machine) Receive(now time.Time, msg message) {
	if msg.To != m.id || msg.From == m.id {
		return
	}
	m.handle(now, msg)
	m.settle(now)
}

// idle reports whether time alone changes nothing: no Tick is needed.
func (m *machine) idle() bool { return m.content() && m.run == nil }

// content reports whether this process lacks no View.
func (m *machine) content() bool {
	return m.held != nil && m.wanted == nil && m.self.Role != collective.Watcher
}

// take returns the messages to send and the Views to hand out, in order.
func (m *machine) take() ([]message, []collective.View) {
	messages, views := m.out.messages, m.out.views
	m.out.messages, m.out.views = nil, nil
	return messages, views
}

// settle starts or continues our own ballot and handles what we send ourselves,
// until nothing more follows.
func (m *machine) settle(now time.Time) {
	m.measure(now)
	m.lead(now)
	for len(m.out.local) > 0 {
		msg := m.out.local[0]
		m.out.local = m.out.local[1:]
		m.handle(now, msg)
		m.lead(now)
	}
}

func (m *machine) send(msg message) {
	msg.From = m.id
	if msg.To == m.id {
		m.out.local = append(m.out.local, msg)
		return
	}
	m.out.messages = append(m.out.messages, msg)
}

// instance names what is voted on next: the epoch after the held one.
func (m *machine) instance() (job, epoch uint64) {
	if m.held == nil {
		return 0, 1
	}
	return m.held.view.Job, m.held.view.Epoch + 1
}

func (m *machine) handle(now time.Time, msg message) {
	switch msg.Kind {
	case commit:
		m.onCommit(msg)
	case closed:
		m.onClosed(msg)
	case query, watch:
		m.onQuery(msg)
	default:
		m.onVote(now, msg)
	}
}

// onVote handles the messages that belong to one instance.
func (m *machine) onVote(now time.Time, msg message) {
	job, epoch := m.instance()
	asks := msg.Kind == prepare || msg.Kind == propose
	switch {
	case msg.Job == job && msg.Epoch == epoch:
		m.onCurrent(now, msg)
	case m.held != nil && msg.Epoch <= m.held.view.Epoch:
		if asks { // the sender is behind; stale answers need none
			m.tell(msg.From)
		}
	case m.held == nil && msg.Kind == propose && msg.Epoch > 1:
		m.consent(msg)
	case m.held != nil && msg.Job == job:
		m.send(message{Kind: query, To: msg.From, Job: job, Epoch: m.held.view.Epoch})
	}
}

func (m *machine) onCurrent(now time.Time, msg message) {
	switch msg.Kind {
	case prepare:
		m.onPrepare(now, msg)
	case propose:
		m.onPropose(now, msg)
	case promise:
		m.onPromise(now, msg)
	case accept:
		m.onAccept(msg)
	case refuse:
		m.onRefuse(now, msg)
	}
}

// upAmong returns those of ps that gossip sees.
func (m *machine) upAmong(ps []peer) []peer {
	return slices.DeleteFunc(slices.Clone(ps), func(p peer) bool {
		_, up := m.seen[p]
		return !up
	})
}
