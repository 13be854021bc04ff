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
	least  int           // minimum number of members of a later View
	random func() uint64 // draws the Job and the length of pauses

	seen     map[peer]candidate // processes that gossip believes alive, including this one
	acceptor acceptor           // our vote in the instance of the next epoch
	held     *holding           // our View, or nil
	excluded *exclusion         // proof that the job continues without us, or nil
	odd      time.Time          // since when settings contradict; zero if they do not
	rejected []Seed             // all seeds, if all of them rejected us
	verdict  error              // why there can be no View
	wanted   *demand            // for the next View, or nil
	run      *run               // our own ballot, or nil
	pace     pace
	out      output
}

// An acceptor remembers what is needed so that an instance is decided only once.
type acceptor struct {
	promised  ballot // nothing below it is accepted
	accepted  *vote
	since     time.Time // when it was accepted
	hopeless  bool      // accepted need not be finished
	disproved bool      // accepted was never decided
}

// A holding is an installed View and the ballot under which it was decided. Its
// holder has accepted nothing above that ballot.
type holding struct {
	view collective.View
	asOf ballot
}

type exclusion struct {
	by    peer
	job   uint64
	epoch uint64 // of by's View
}

// A demand asks for the View after the current one.
type demand struct {
	since time.Time
	lost  map[peer]bool // as the data plane says, whatever gossip says
	short time.Time     // since when too few members can be reached; zero if enough can
}

// output collects the results of inputs until take.
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

// Up reports that gossip sees c.
func (m *machine) Up(now time.Time, c candidate) {
	if _, known := m.seen[peerOf(c.Member)]; !known {
		m.pace.hurry(now)
	}
	m.seen[peerOf(c.Member)] = c
	m.settle(now)
}

// Down reports that gossip has given up p. It may be wrong.
func (m *machine) Down(now time.Time, p peer) {
	if p == m.id {
		return
	}
	delete(m.seen, p)
	if m.held == nil && m.excluded != nil && m.excluded.by == p {
		m.excluded = nil // the job without us may be over
	}
	m.withoutPeer(now, p)
	m.settle(now)
}

// Tick passes the time: unanswered messages are sent again.
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

// idle reports whether no Tick is needed.
func (m *machine) idle() bool { return m.content() && m.run == nil }

// content reports whether this process waits for no View.
func (m *machine) content() bool {
	return m.held != nil && m.wanted == nil && m.self.Role != collective.Watcher
}

// take returns the messages to send and the Views to hand out, in order.
func (m *machine) take() ([]message, []collective.View) {
	messages, views := m.out.messages, m.out.views
	m.out.messages, m.out.views = nil, nil
	return messages, views
}

// settle starts or continues our own ballot, and handles the messages that we send
// to ourselves, until there are no more.
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

// instance returns what is voted on next: the epoch after the current one.
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
