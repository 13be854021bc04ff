package membership

import (
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// A run is one ballot of ours, from prepare to commit.
type run struct {
	ballot   ballot
	asked    []peer              // got our prepare
	promises map[peer]*vote      // of each process that promised: what it had accepted, or nil
	fresh    []collective.Member // the first View to propose unless another must be finished
	motion   *motion             // nil until something is proposed
	since    time.Time           // when the present phase began
	resend   struct {
		at  time.Time
		gap time.Duration
	}
}

// A motion is what a run has proposed and what it still needs.
type motion struct {
	vote     *vote
	targets  []peer // got our propose
	await    []peer // all of these must accept before we commit,
	voters   []peer // and need of these
	need     int
	accepted map[peer]bool
}

func (d *motion) done() bool {
	yes := func(ps []peer) (n int) {
		for _, p := range ps {
			if d.accepted[p] {
				n++
			}
		}
		return n
	}
	return yes(d.await) == len(d.await) && yes(d.voters) >= d.need
}

// lead continues our ballot, or starts one if it is our turn.
func (m *machine) lead(now time.Time) {
	switch {
	case m.self.Role == collective.Watcher || m.excluded != nil || m.verdict != nil:
	case m.run != nil:
		m.press(now)
	case m.held != nil && m.wanted == nil || now.Before(m.pace.hold):
	case m.held == nil:
		m.leadFirst(now)
	default:
		m.leadNext(now)
	}
}

// leadFirst starts a ballot for the first View if we are the lowest of the complete
// set. It also starts one to finish a View that was never committed, if it is our
// turn among the survivors: the lowest first, then the others one by one.
func (m *machine) leadFirst(now time.Time) {
	var asked []peer
	if a := m.acceptor.accepted; a != nil && !m.acceptor.hopeless {
		left := m.upAmong(peersOf(a.View.Members))
		turn := slices.Index(left, m.id)
		if _, alive := m.seen[a.Ballot.By]; alive {
			turn++
		}
		if now.Sub(m.acceptor.since) >= time.Duration(turn)*patience {
			asked = left
		}
	}
	members, _ := assemble(m.self, m.seen)
	if len(members) > 0 && peerOf(members[0]) == m.id {
		asked = union(asked, peersOf(members))
	} else {
		members = nil
	}
	if len(asked) > 0 {
		m.begin(now, asked, members)
	}
}

// leadNext starts a ballot for the next View if we are the lowest live rank. If that
// rank does not, because it wants no View yet, the others follow one by one. If too
// few are left without the lost, the lost are asked too: they may be alive although
// their connections broke.
func (m *machine) leadNext(now time.Time) {
	asked, left := m.left()
	if len(left) < m.enough() {
		asked = peersOf(m.held.view.Members)
		left = m.upAmong(asked)
	}
	turn := min(time.Duration(slices.Index(left, m.id))*turnGap, turnMost)
	if len(left) >= m.enough() && now.Sub(m.wanted.since) >= turn {
		m.begin(now, asked, nil)
	}
}

func (m *machine) begin(now time.Time, asked []peer, fresh []collective.Member) {
	m.pace.round++
	m.run = &run{
		ballot: ballot{Round: m.pace.round, By: m.id}, asked: asked, fresh: fresh,
		promises: map[peer]*vote{}, since: now,
	}
	m.run.rearm(now, resendFirst)
	for _, p := range asked {
		m.sendPrepare(p)
	}
}

func (r *run) rearm(now time.Time, gap time.Duration) {
	r.resend.gap = min(gap, resendMost)
	r.resend.at = now.Add(r.resend.gap)
}

func (m *machine) sendPrepare(to peer) {
	job, epoch := m.instance()
	m.send(message{Kind: prepare, To: to, Job: job, Epoch: epoch, Ballot: m.run.ballot})
}

func (m *machine) sendPropose(to peer) {
	job, epoch := m.instance()
	m.send(message{Kind: propose, To: to, Job: job, Epoch: epoch, Ballot: m.run.ballot, Vote: m.run.motion.vote})
}

// press continues a run as time passes: it chooses after it has waited long enough,
// and repeats unanswered messages.
func (m *machine) press(now time.Time) {
	r := m.run
	if r.motion == nil && m.heardEnough(now) {
		m.choose(now)
		return
	}
	if m.held != nil && now.Sub(r.since) >= 2*grace {
		m.run = nil // a process fell silent or came back: start over
		return
	}
	if now.Before(r.resend.at) {
		return
	}
	r.rearm(now, 2*r.resend.gap)
	for _, p := range r.unanswered() {
		if r.motion == nil {
			m.sendPrepare(p)
		} else {
			m.sendPropose(p)
		}
	}
}

// unanswered returns the processes that owe an answer in this phase.
func (r *run) unanswered() []peer {
	if d := r.motion; d != nil {
		return slices.DeleteFunc(slices.Clone(d.targets), func(p peer) bool { return d.accepted[p] })
	}
	return slices.DeleteFunc(slices.Clone(r.asked), func(p peer) bool {
		_, ok := r.promises[p]
		return ok
	})
}

func (m *machine) onPromise(now time.Time, msg message) {
	r := m.run
	if r == nil || msg.Ballot != r.ballot || r.motion != nil || !slices.Contains(r.asked, msg.From) {
		return
	}
	r.promises[msg.From] = msg.Vote
	if msg.Vote == nil || m.held != nil {
		return
	}
	// Others may know whether that View was decided: hear them too.
	for _, p := range m.upAmong(peersOf(msg.Vote.View.Members)) {
		if !slices.Contains(r.asked, p) {
			r.asked = append(r.asked, p)
			m.sendPrepare(p)
		}
	}
}

// heardEnough reports whether the promises suffice to choose a View.
func (m *machine) heardEnough(now time.Time) bool {
	r := m.run
	if m.held == nil {
		return len(r.promises) == len(r.asked)
	}
	late := now.Sub(r.since) >= grace
	return len(r.promises) >= m.enough() && (late || len(m.upAmong(r.unanswered())) == 0)
}

func (m *machine) onAccept(msg message) {
	r := m.run
	if r == nil || msg.Ballot != r.ballot || r.motion == nil {
		return
	}
	r.motion.accepted[msg.From] = true
	if r.motion.done() {
		m.decide(r)
	}
}

// decide installs the View that the motion decided, and tells its members.
func (m *machine) decide(r *run) {
	v := r.motion.vote.View
	m.run = nil
	for _, p := range peersOf(v.Members) {
		if p != m.id {
			m.send(message{Kind: commit, To: p, Job: v.Job, Epoch: v.Epoch, Ballot: r.ballot, Vote: r.motion.vote})
		}
	}
	v.Self = rankOf(v.Members, m.id)
	if v.Self < 0 { // we finished a View without us
		m.excluded = &exclusion{by: peerOf(v.Members[0]), job: v.Job, epoch: v.Epoch}
		return
	}
	m.install(v, r.ballot)
}

func (m *machine) onRefuse(now time.Time, msg message) {
	m.pace.saw(msg.Ballot)
	if m.run != nil && m.run.ballot.less(msg.Ballot) {
		m.run = nil
		m.pace.yield(now, m.random)
	}
}

// withoutPeer ends a run that waits for p, which is gone. A first View starts over,
// because the set has changed. A later View need not, until it is proposed.
func (m *machine) withoutPeer(now time.Time, p peer) {
	r := m.run
	if r == nil || !slices.Contains(r.asked, p) {
		return
	}
	if m.held == nil || r.motion != nil && slices.Contains(r.motion.await, p) {
		m.run = nil
		return
	}
	if _, answered := r.promises[p]; !answered {
		r.asked = slices.DeleteFunc(r.asked, func(q peer) bool { return q == p })
	}
}

func union(a, b []peer) []peer {
	for _, p := range b {
		if !slices.Contains(a, p) {
			a = append(a, p)
		}
	}
	return a
}
