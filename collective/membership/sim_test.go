package membership

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// A world runs machines in virtual time. Its weather says how network and gossip
// misbehave. After every View it checks that all processes agree.
type world struct {
	rng     *rand.Rand
	now     time.Time
	weather weather
	nodes   int
	surplus int // more machines than expected, so that two jobs may form
	slots   []Slot
	locals  int
	procs   []*proc // one per slot: the live process, or the last one
	ever    map[peer]*proc
	births  []*proc // all processes, oldest first
	queue   events
	serial  int
	agreed  map[[2]uint64]collective.View
	tracing bool
	trace   []string
	nonce   uint64
	broken  string          // the violation, or ""
	mend    bool            // ask for the next View if a member of the current one is dead
	post    func([]message) // if not nil, takes the messages instead of the weather
	deaths  int             // that sabotage may still cause
	slander bool            // gossip has given up a live process
}

type weather struct {
	loss, dup float64
	delay     time.Duration // maximum, of a message
	gossip    time.Duration // maximum, until an arrival or a death is noticed
	rumours   float64       // false alarms per process and tick
	sabotage  float64       // probability that a proposer dies while it sends proposals or commits
	straggle  time.Duration // maximum delay of a message that a dying proposer still sent
	slander   bool          // gossip may give up live processes
}

type proc struct {
	*machine
	member collective.Member
	dead   bool
	views  []collective.View
}

type event struct {
	at     time.Time
	serial int
	do     func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	if q[i].at.Equal(q[j].at) {
		return q[i].serial < q[j].serial
	}
	return q[i].at.Before(q[j].at)
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

const simTick = 100 * time.Millisecond

// newWorld has slots for nodes machines and surplus ones, of locals workers each.
func newWorld(seed uint64, nodes, surplus, locals int, w weather) *world {
	s := &world{
		rng: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_000_000, 0), weather: w, surplus: surplus, slander: w.slander,
		nodes: nodes, locals: locals, ever: map[peer]*proc{}, agreed: map[[2]uint64]collective.View{},
	}
	for n := range nodes + surplus {
		for l := range locals {
			s.slots = append(s.slots, Slot{fmt.Sprintf("vm%d", n), l})
		}
	}
	s.procs = make([]*proc, len(s.slots))
	return s
}

func (s *world) logf(format string, args ...any) {
	if !s.tracing {
		return
	}
	s.trace = append(s.trace, fmt.Sprintf("%6dms ", s.now.Sub(time.Unix(1_000_000, 0)).Milliseconds())+fmt.Sprintf(format, args...))
}

func (s *world) story() string { return s.broken + "\n" + strings.Join(s.trace, "\n") }

func (s *world) after(d time.Duration, do func()) {
	s.serial++
	heap.Push(&s.queue, event{s.now.Add(d), s.serial, do})
}

func (s *world) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(s.rng.Int64N(int64(d)))
}

// start puts a new process into a slot.
func (s *world) start(slot int) *proc {
	s.nonce++
	at := s.slots[slot]
	m := collective.Member{Name: fmt.Sprintf("%s/%d", at.Node, at.Local), Nonce: s.nonce, Node: at.Node, Local: at.Local, LocalSize: s.locals}
	p := &proc{member: m, machine: newMachine(s.now, expects(m, s.nodes), s.rng.Uint64)}
	s.procs[slot] = p
	s.ever[p.id] = p
	s.births = append(s.births, p)
	s.logf("start %s.%d", m.Name, m.Nonce)
	for _, q := range s.procs {
		if q != nil && q != p && !q.dead {
			s.notice(p, q)
			s.notice(q, p)
		}
	}
	s.flush(p)
	s.after(s.upTo(simTick), func() { s.tick(p) })
	return p
}

// notice lets gossip tell p, some time later, that q is alive.
func (s *world) notice(p, q *proc) {
	s.after(s.upTo(s.weather.gossip), func() {
		if !p.dead && !q.dead {
			p.Up(s.now, expects(q.member, s.nodes))
			s.flush(p)
		}
	})
}

func (s *world) crash(slot int) {
	p := s.procs[slot]
	if p == nil || p.dead {
		return
	}
	p.dead = true
	s.logf("crash %s.%d", p.member.Name, p.member.Nonce)
	for _, q := range s.procs {
		if q != nil && !q.dead {
			s.after(s.upTo(4*s.weather.gossip), func() { s.bury(q, p) })
		}
	}
}

func (s *world) bury(q, p *proc) {
	if !q.dead {
		q.Down(s.now, p.id)
		s.flush(q)
	}
}

func (s *world) tick(p *proc) {
	if p.dead {
		return
	}
	if !p.idle() {
		p.Tick(s.now)
		s.flush(p)
	}
	if s.weather.slander && s.rng.Float64() < s.weather.rumours {
		if q := s.procs[s.rng.IntN(len(s.procs))]; q != nil && q != p && !q.dead {
			s.logf("rumour: %s.%d takes %s.%d for dead", p.member.Name, p.member.Nonce, q.member.Name, q.member.Nonce)
			s.bury(p, q)
			s.after(s.upTo(3*time.Second), func() { s.notice(p, q) })
		}
	}
	if s.mend && p.learner.held != nil && p.demand.wanted == nil && p.learner.excluded == nil && s.rng.IntN(5) == 0 {
		s.next(p)
	}
	s.after(simTick, func() { s.tick(p) })
}

// next asks for a View, as a data plane that knows some of the dead, or none.
func (s *world) next(p *proc) {
	var lost []peer
	dead := false
	for _, q := range peersOf(p.learner.held.view.Members) {
		if s.ever[q].dead {
			dead = true
			if s.rng.IntN(2) == 0 {
				lost = append(lost, q)
			}
		}
	}
	if dead {
		s.logf("%s.%d asks for the View after %d without %v", p.member.Name, p.member.Nonce, p.learner.held.view.Epoch, lost)
		p.Next(s.now, lost)
		s.flush(p)
	}
}

// flush delivers or drops a machine's messages, and checks its Views.
func (s *world) flush(p *proc) {
	messages, views := p.drain()
	for _, v := range views {
		s.installed(p, v)
	}
	if s.post != nil {
		s.post(messages)
		return
	}
	sabotaged := len(messages) > 0 && (messages[0].Kind == propose || messages[0].Kind == commit) &&
		s.rng.Float64() < s.weather.sabotage
	if sabotaged {
		s.sabotage(p)
	}
	for _, msg := range messages {
		copies := 1
		if sabotaged {
			copies = s.rng.IntN(2)
		}
		if s.rng.Float64() < s.weather.dup {
			copies = 3
		}
		for range copies {
			if s.rng.Float64() < s.weather.loss {
				continue
			}
			delay := s.upTo(s.weather.delay / 10)
			switch {
			case sabotaged:
				delay = s.upTo(s.weather.straggle)
			case s.rng.IntN(4) == 0:
				delay = s.upTo(s.weather.delay)
			}
			s.after(delay, func() { s.deliver(msg) })
		}
	}
}

// sabotage kills a process at the worst moment, or makes others believe so.
func (s *world) sabotage(p *proc) {
	slot := slices.Index(s.procs, p)
	if s.mend { // dead processes do not return, so not too many may die
		if s.deaths > 0 {
			s.deaths--
			s.crash(slot)
		}
		return
	}
	if !s.weather.slander || s.rng.IntN(3) > 0 {
		s.crash(slot)
		s.after(s.upTo(3*time.Second), func() { s.restart(slot) })
		return
	}
	for _, q := range s.procs {
		if q != nil && q != p && !q.dead && s.rng.IntN(2) == 0 {
			s.after(s.upTo(time.Second), func() { s.bury(q, p) })
			s.after(time.Second+s.upTo(4*time.Second), func() { s.notice(q, p) })
		}
	}
}

func (s *world) restart(slot int) {
	if s.procs[slot] == nil || s.procs[slot].dead {
		s.start(slot)
	}
}

func (s *world) deliver(msg message) {
	p := s.ever[msg.To]
	if p == nil || p.dead {
		return
	}
	s.logf("%v %s.%d -> %s.%d epoch %d ballot %d.%s", msg.Kind, msg.From.Name, msg.From.Nonce, msg.To.Name, msg.To.Nonce, msg.Epoch, msg.Ballot.Round, msg.Ballot.By.Name)
	p.Receive(s.now, msg)
	s.flush(p)
}

func (s *world) installed(p *proc, v collective.View) {
	s.logf("%s.%d installs %v", p.member.Name, p.member.Nonce, v)
	p.views = append(p.views, v)
	key := [2]uint64{v.Job, v.Epoch}
	if other, ok := s.agreed[key]; ok && other.Digest() != v.Digest() {
		s.broken = fmt.Sprintf("two Views of one epoch: %v and %v", other, v)
	}
	s.agreed[key] = v
	if v.Job == 0 || v.Self < 0 || peerOf(v.Members[v.Self]) != p.id {
		s.broken = fmt.Sprintf("%v is not a View of %s", v, p.member.Name)
	}
	for _, q := range s.procs {
		if s.surplus == 0 && q != nil && !q.dead && q.learner.held != nil && q.learner.held.view.Job != v.Job {
			s.broken = fmt.Sprintf("%s holds %v, %s holds %v", q.member.Name, q.learner.held.view, p.member.Name, v)
		}
	}
	s.uniform(v)
}

// uniform checks more than live processes can see. As long as gossip gives up no
// live process and most members of a View live, none of these is in another first
// View, even if only dead processes ever held one of the two.
func (s *world) uniform(v collective.View) {
	if s.slander || s.surplus > 0 || v.Epoch != 1 {
		return
	}
	for key, other := range s.agreed {
		if key[0] == v.Job || key[1] != 1 {
			continue
		}
		living, both := 0, ""
		for _, m := range other.Members {
			if !s.ever[peerOf(m)].dead {
				living++
			}
			if rankOf(v.Members, peerOf(m)) >= 0 {
				both = m.Name
			}
		}
		if both != "" && living > other.Size()/2 {
			s.broken = fmt.Sprintf("%s is in both %v and %v", both, other, v)
		}
	}
}

// run lets virtual time pass until done, a violation or the end.
func (s *world) run(d time.Duration, done func() bool) bool {
	end := s.now.Add(d)
	for s.broken == "" && len(s.queue) > 0 {
		if done != nil && done() {
			return true
		}
		if s.queue[0].at.After(end) {
			break
		}
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		e.do()
	}
	s.now = end
	return done != nil && done()
}

// calm ends all misbehaviour. From then on gossip tells the truth.
func (s *world) calm() {
	s.logf("calm")
	s.weather = weather{delay: 20 * time.Millisecond, gossip: 100 * time.Millisecond}
	for slot, p := range s.procs {
		if p == nil || p.dead {
			s.start(slot)
		}
	}
	for _, p := range s.procs {
		for _, q := range s.births {
			switch {
			case q == p:
			case q.dead:
				s.after(s.upTo(noticed), func() { s.bury(p, q) })
			default:
				s.notice(p, q)
			}
		}
	}
}

// converged reports whether every live process holds a first View or knows that it
// came too late, and at least one holds one.
func (s *world) converged() bool {
	holders := 0
	for _, p := range s.procs {
		switch {
		case p.learner.held != nil:
			holders++
		case p.learner.excluded == nil:
			return false
		}
	}
	return holders > 0
}
