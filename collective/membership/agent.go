package membership

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/ringtrain/ringtrain/collective"
)

// An Agent runs the gossip of one process and its part in the vote on Views.
// Its methods are safe for concurrent use.
type Agent struct {
	cfg  Config
	addr netip.AddrPort
	list *memberlist.Memberlist

	// Owned by the Agent's goroutine.
	machine *machine
	known   map[peer]memberlist.Node // addresses; members of the View stay
	met     map[peer]bool            // the processes that rouse has joined since the last View
	roll    *roll                    // nil if processes need not prove that they live
	demands int                      // calls of Next in progress
	tried   bool                     // each seed has been tried

	in      *inbox
	out     *outbox
	letters *letters
	status  *status
	life    lifetime
}

// A lifetime ends once.
type lifetime struct {
	cancel context.CancelFunc
	over   <-chan struct{}
	work   sync.WaitGroup // the Agent's goroutine, the joiner, the answerer, leave
	mu     sync.Mutex     // held while leaving and closing: memberlist panics on Leave after Shutdown
	closed bool
}

// tick is the period at which the machine gets the time while it waits.
const tick = 50 * time.Millisecond

// Start opens gossip and begins to look for the others, without waiting for them.
// ctx matters only until Start returns. The Agent works until Close.
//
// A mistake in c is an error that matches [ErrConfig]. If another process uses the
// port, the error matches [ErrPortInUse].
func Start(ctx context.Context, c Config) (*Agent, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	self, meta, err := visible(c.candidate())
	if err != nil {
		return nil, err
	}
	if lost := len(c.Member.Addrs) - len(self.Addrs); lost > 0 {
		c.Log.Warn("addresses that do not fit are not announced", "dropped", lost, "kept", len(self.Addrs))
	}
	a := &Agent{cfg: c, known: map[peer]memberlist.Node{}, met: map[peer]bool{}, in: newInbox(), letters: newLetters(), status: newStatus(self.Member)}
	a.machine = newMachine(time.Now(), self, rand.Uint64)
	a.machine.demand.least = c.MinSize
	if c.callsRoll() {
		a.roll = newRoll(rand.Uint64)
	}
	if err := a.open(&delegate{agent: a, meta: meta}); err != nil {
		return nil, err
	}
	a.begin()
	return a, nil
}

// open binds the sockets and creates memberlist.
func (a *Agent) open(d *delegate) error {
	g := a.cfg.gossip(a.visited)
	g.Delegate, g.Events, g.Alive, g.Conflict = d, d, d, d
	t, err := listen(a.cfg.Bind, g.TCPTimeout, g.Logger)
	if errors.Is(err, ErrPortInUse) {
		return err // complete as it is
	}
	if err != nil {
		return fmt.Errorf("membership: %w", err)
	}
	g.Transport = t
	g.BindPort, g.AdvertisePort = t.GetAutoBindPort(), t.GetAutoBindPort()
	ip, port, err := t.FinalAdvertiseAddr(g.AdvertiseAddr, g.AdvertisePort)
	if err == nil {
		a.list, err = memberlist.Create(g)
	}
	if err != nil {
		_ = t.Shutdown()
		return fmt.Errorf("membership: gossip on %v: %w", a.cfg.Bind, err)
	}
	own, _ := netip.AddrFromSlice(ip)
	a.addr = netip.AddrPortFrom(own.Unmap(), uint16(port))
	a.out = newOutbox(a.list.SendReliable, a.unsent)
	a.cfg.Log.Debug("gossip is up", "addr", a.addr, "name", g.Name, "cluster", g.Label)
	return nil
}

// begin starts the Agent's goroutines.
func (a *Agent) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	a.life.cancel, a.life.over = cancel, ctx.Done()
	j := &joiner{
		self: a.addr, seeds: a.cfg.Join, lost: a.status.lost, met: a.status.met, soon: a.status.soon,
		join: func(addr string) error {
			_, err := a.list.Join([]string{addr})
			return err
		},
		report: func(failures []Seed, hopeless bool) {
			a.in.put(func(now time.Time) { a.seeds(now, failures, hopeless) })
		},
		check: a.check,
	}
	a.life.work.Go(func() { a.loop(ctx) })
	a.life.work.Go(func() { j.run(ctx) })
	if a.cfg.Answer != nil {
		a.life.work.Go(func() { a.answer(ctx) })
	}
}

// loop is the Agent's goroutine.
func (a *Agent) loop(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		a.publish()
		ticks := ticker.C
		if a.machine.idle() && a.roll.idle() {
			ticks = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-a.in.wake:
			for _, do := range a.in.drain() {
				do(time.Now())
			}
		case <-ticks:
			a.callRoll(time.Now())
			a.machine.Tick(time.Now())
		}
	}
}

// publish hands out the results of the last inputs: messages, Views, status.
func (a *Agent) publish() {
	messages, views := a.machine.drain()
	a.status.foresee(a.machine.outlook()) // before a View: its receiver may call Next at once
	for _, v := range views {
		a.cfg.Log.Info("view agreed", "rank", v.Self, "size", v.Size(), "view", v.String())
		a.status.install(v)
		a.introduce(v)
	}
	a.rouse()
	for _, msg := range messages {
		if to, ok := a.known[msg.To]; ok {
			a.out.put(to, encodeMessage(msg))
		}
	}
	a.status.exclude(a.machine.learner.excluded)
	a.status.fail(a.machine.judge.verdict)
	if a.machine.learner.held != nil {
		return
	}
	w := a.machine.waiting()
	w.Addr = a.addr
	for _, c := range firstFew(a.roll.deaf()) {
		at := a.known[peerOf(c.Member)]
		w.Notes = append(w.Notes, fmt.Sprintf("%s at %s does not answer this process at %s: each must reach the other's --bind", c.Name, at.Address(), a.addr))
	}
	if !a.tried {
		w.Trying = a.cfg.Join
	}
	if w, changed := a.status.wait(w); changed && a.cfg.Progress != nil {
		a.cfg.Progress(w)
	}
}

// introduce joins a known member of a new View if gossip has not yet shown this process all of
// the others. Gossip takes a moment to spread. If this process knew only the seed and the seed
// died, it would have no address to send its answers to.
func (a *Agent) introduce(v collective.View) {
	a.met = map[peer]bool{}
	var known []memberlist.Node
	for _, m := range v.Members {
		if at, ok := a.known[peerOf(m)]; ok {
			known = append(known, at)
		}
	}
	if v.Self >= 0 && len(known) > 0 && len(known) < v.Size()-1 {
		a.status.join(known[v.Self%len(known)].Address()) // not all ask the same one
	}
}

// rouse joins each process that gossip shows but that does not answer our ballot: it may not know
// our address.
func (a *Agent) rouse() {
	for _, p := range a.machine.proposer.silent() {
		if at, ok := a.known[p]; ok && !a.met[p] {
			a.met[p] = true
			a.status.join(at.Address())
		}
	}
}

func (a *Agent) up(now time.Time, c candidate, at memberlist.Node) {
	p := peerOf(c.Member)
	if p == a.machine.id {
		return
	}
	a.known[p] = at
	a.status.up(c.Member)
	if a.roll != nil && !a.roll.see(now, c) {
		a.callRoll(now)
		return
	}
	a.machine.Up(now, c)
}

func (a *Agent) down(now time.Time, m collective.Member) {
	p := peerOf(m)
	if p == a.machine.id {
		return
	}
	a.status.down(p)
	if a.roll != nil {
		a.roll.gone(p)
	}
	a.machine.Down(now, p)
	held := a.machine.learner.held
	if held == nil || rankOf(held.view.Members, p) < 0 {
		delete(a.known, p)
		return
	}
	if at, ok := a.known[p]; ok {
		a.status.vanished(p, at.Address())
	}
	a.cfg.Log.Warn("gossip has given up a member: it left or seems dead", "member", m.Name, "rank", rankOf(held.view.Members, p))
	if a.cfg.Gone != nil {
		a.cfg.Gone(m)
	}
}

// seeds records the seeds that could not be joined. If hopeless, all of them
// rejected this process.
func (a *Agent) seeds(now time.Time, failures []Seed, hopeless bool) {
	if hopeless {
		a.machine.Rejected(failures) // for good: the seeds may have ended since, for the same reason
	}
	a.tried = true
	a.machine.consider(now)
	if a.status.unreached(failures) && len(failures) > 0 {
		a.cfg.Log.Info("cannot join all seeds yet", "failures", failures)
	}
}

// visited records a process that was turned away. memberlist's goroutines call it.
func (a *Agent) visited(v visitor) {
	a.in.message(func(time.Time) {
		if a.machine.learner.held == nil && !(v.keyless && a.machine.Refuse(v)) {
			a.status.visited(v)
		}
	})
}

// check calls Config.Check.
func (a *Agent) check() {
	if a.cfg.Check == nil {
		return
	}
	if err := a.cfg.Check(); err != nil {
		a.in.put(func(time.Time) { a.machine.Unfit(err) })
	}
}

// Addr returns the gossip address at which others can join this process.
func (a *Agent) Addr() netip.AddrPort { return a.addr }

// Member returns this process as others see it, with its nonce.
func (a *Agent) Member() collective.Member { return a.machine.census.self.Member }

// Seen returns the processes that gossip believes alive, in or out of the View,
// including this one and Watchers, ordered by (Node, Local).
func (a *Agent) Seen() []collective.Member { return a.status.members() }

// View returns the newest View, once the first is agreed. A Watcher gets the
// newest that it has heard of, with Self -1, about a second late. Errors:
//
//   - [ErrComplete]: this process came too late for the first View.
//   - [ErrDiffer]: the processes that are present contradict each other.
//   - [ErrKey]: every seed has a different key, or a key on one side is missing.
//   - The error of Config.Check: this machine is not fit for the job.
//   - [WaitError]: ctx ended first.
//   - [ErrClosed]: after Close.
func (a *Agent) View(ctx context.Context) (collective.View, error) {
	return a.status.view(ctx, a.machine.census.self.Member)
}

// leaveMost bounds Leave.
const leaveMost = 2 * time.Second

// Leave announces to the others that this process leaves, so that they need not
// detect it. It first sends all queued messages, and takes at most two seconds. The Agent
// must still be closed.
func (a *Agent) Leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaveMost)
	defer cancel()
	_ = a.out.flush(ctx) // a process that misses a message asks the others
	done := make(chan error, 1)
	if !a.life.begin(func() { done <- a.leave(ctx) }) {
		return nil
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("membership: leaving: %w", ctx.Err())
	}
}

// begin runs do in a goroutine that Close waits for. After Close it returns false.
func (l *lifetime) begin(do func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.work.Go(do)
	}
	return !l.closed
}

func (a *Agent) leave(ctx context.Context) error {
	a.life.mu.Lock()
	defer a.life.mu.Unlock()
	if a.life.closed || ctx.Err() != nil {
		return ctx.Err()
	}
	end, _ := ctx.Deadline()
	if err := a.list.Leave(time.Until(end)); err != nil {
		return fmt.Errorf("membership: %w", err)
	}
	return nil
}

// Close ends gossip at once. The others then believe that the process is dead, unless it
// left before. When Close returns, all goroutines of the Agent have ended;
// memberlist's own end within a probe interval (1 s). A second Close does nothing.
func (a *Agent) Close() error {
	a.life.mu.Lock()
	if a.life.closed {
		a.life.mu.Unlock()
		return nil
	}
	a.life.closed = true
	a.life.cancel()
	err := a.list.Shutdown()
	a.life.mu.Unlock()
	a.out.close()
	a.life.work.Wait()
	a.status.close()
	return err
}
