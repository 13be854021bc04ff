package paramserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// Peers is the strategy of spacy-ray, in which workers are parameter servers for each other.
// Each worker owns a share of the parameters, which only it updates:
//
//   - A worker computes a gradient on the values that it has. It adds the part of its own share
//     to a sum, and sends the others to their owners, with the version of the owner's values
//     that they were computed on. Owners drop gradients of other versions than their newest.
//   - After a step, an owner whose sum has a quorum of gradients updates its share, and sends
//     the values to all others. They begin to use them after the step that they are in, so a
//     forward and a backward pass see the same values.
//
// Nobody waits. So a fast worker may contribute several gradients to an update, and a slow one
// none. A single worker with a quorum of 1 gets the bits of trainer.AllReduce.
//
// Each worker takes all steps of a run, as in spacy-ray. The optimizer counts the steps of
// the owner, not its updates. A worker that has taken its last step waits for the others, and
// meanwhile continues to update its share. Then all workers have the same values. Only rank 0
// evaluates and saves, so the tasks of the others have no test rows.
//
// Two things differ from spacy-ray. It gives each worker the same number of layers; here the
// largest parameters come first, and each goes to the worker that owns the fewest elements. And
// its workers end with different values, because nobody sends them the last ones.
//
// If a worker is lost, so is its share. The others get an error that names it.
type Peers struct {
	sync   *Sync
	quorum int

	mail      *peerMail         // nil before Start, and after Disconnect or Close
	messages  messages          // nil before Start, and after Disconnect
	group     *collective.Group // of messages
	params    *nn.Params
	versions  []int     // by owner: of the values in params
	out       []float32 // the message in progress
	sent      int       // elements, in the step in progress
	steps     int       // done
	undivided bool      // as in trainer.Step
	questions int       // asked
	finished  bool      // all workers have taken their last step
	stale     Staleness // set when they have
}

var _ trainer.Asynchronous = (*Peers)(nil)

// NewPeers makes the strategy; see NewSync for b and o. An update needs quorum gradients, of
// any workers. 0 stands for the number of workers.
func NewPeers(b nn.Backend, o optim.Optimizer, quorum int) *Peers {
	return &Peers{sync: NewSync(b, o, Servers{}), quorum: quorum}
}

// PeersPolicy returns the Policy that describes Peers with this quorum.
func PeersPolicy(quorum int) Policy {
	return Policy{Name: "ps-peers", Quorum: cmp.Or(quorum, Everyone)}
}

// Start implements trainer.Strategy. Rank 0 gives its values to all ranks, and the optimizer's
// state to the owners.
func (p *Peers) Start(ctx context.Context, start trainer.Start) (trainer.Place, error) {
	policy := PeersPolicy(p.quorum)
	if err := policy.Check(); err != nil {
		return trainer.Place{}, err
	}
	if err := p.endMessages(ctx, start.Group); err != nil {
		return trainer.Place{}, err
	}
	p.sync.asynchronous = &asynchronous{Policy: policy}
	place, err := p.sync.Start(ctx, start)
	if err != nil {
		return place, err
	}
	x := p.sync.exchange
	m, err := x.group.Messages(ctx)
	if err != nil {
		return place, fmt.Errorf("paramserver: %w", err)
	}
	p.messages, p.group, p.params = m, x.group, start.Params
	p.versions, p.out = make([]int, x.workers), make([]float32, headerLen+slices.Max(x.lens)+2*staleWords)
	p.steps, p.finished, p.stale = place.Step, false, Staleness{}
	p.mail = newPeerMail(m, x, owner{share: x.share, quorum: cmp.Or(p.quorum, x.workers)})
	return place, nil
}

// Step implements trainer.Strategy. The Report covers the gradients of all workers that this
// one has received since the last Report, dropped ones included. The last step, and one after
// which training stops, waits for that of all other workers.
func (p *Peers) Step(ctx context.Context, params *nn.Params, s trainer.Step) (trainer.Report, error) {
	if err := p.sync.backend.Sync(ctx); err != nil {
		return trainer.Report{}, err
	}
	begin := time.Now()
	if err := finite(p.group, params, s); err != nil {
		return trainer.Report{}, err
	}
	p.group.Mark(uint64(s.Index))
	p.sent, p.undivided = 0, s.Undivided
	took, err := p.step(ctx, params, s)
	stop := p.mail.stopping()
	if err == nil && (s.Last || stop) {
		err = p.finish(ctx)
		stop = p.mail.stopping() // all have said so
	}
	if err != nil {
		return trainer.Report{}, fmt.Errorf("paramserver: step %d: %w", s.Index+1, err)
	}
	p.renew()
	report := p.mail.report()
	report.Stop = stop
	report.Bytes, report.Buckets = 4*params.Grads.Len(), 1
	report.Sent, report.Plain = 4*p.sent, 4*p.sent
	report.Update, report.Exchange = took, time.Since(begin)-took
	return report, nil
}

// step is Step without a change of params. It returns how long the update took.
func (p *Peers) step(ctx context.Context, params *nn.Params, s trainer.Step) (took time.Duration, err error) {
	if err := p.push(ctx, params.Grads.Float32s(), s); err != nil {
		return 0, err
	}
	begin := time.Now()
	updated, err := p.update(s.Index)
	if took = time.Since(begin); err != nil {
		return took, err
	}
	if updated {
		if err := p.publish(ctx, peerValues, nil); err != nil {
			return took, err
		}
	}
	p.steps++
	return took, nil
}

// push gives all owners their part of a gradient.
func (p *Peers) push(ctx context.Context, grads []float32, s trainer.Step) error {
	x := p.mail.exchange
	for k := range x.workers {
		to := (p.mail.self + 1 + k) % x.workers // this worker comes last, so that the others wait less
		out := p.out[:headerLen+x.lens[to]]
		header{version: p.versions[to], rows: s.Weight, loss: s.Loss, stop: s.Stop}.put(out)
		x.pieces(to, out[headerLen:], grads, func(mine, theirs []float32) { copy(theirs, mine) })
		if to == p.mail.self {
			return p.mail.deliver(to, peerGradient, out)
		}
		if err := p.send(ctx, to, peerGradient, out); err != nil {
			return err
		}
	}
	return nil
}

// update updates this worker's share if that is due.
func (p *Peers) update(step int) (updated bool, err error) {
	m := p.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.owner.due() {
		return false, nil
	}
	return true, m.owner.update(step, p.undivided)
}

// publish sends the values of this worker's share to all others, followed by tail.
func (p *Peers) publish(ctx context.Context, tag uint32, tail []float32) error {
	o := &p.mail.owner // only this goroutine changes version and values
	values := o.params.Values.Float32s()
	out := append(append(p.out[:headerLen], values...), tail...)
	header{version: o.version}.put(out)
	return p.sendAll(ctx, tag, out)
}

// finish waits until all workers have taken their last step. Then it gives and receives the last
// values.
func (p *Peers) finish(ctx context.Context) error {
	m := p.mail
	if p.finished {
		return nil
	}
	header{}.put(p.out)
	if err := p.sendAll(ctx, peerFinish, p.out[:headerLen]); err != nil {
		return err
	}
	for last := false; !last; {
		err := m.await(ctx, func() bool {
			last = m.all(peerFinish)
			return last || m.owner.due()
		})
		if err != nil {
			return err
		}
		updated, err := p.update(max(p.steps-1, 0))
		if err == nil && updated && !last {
			err = p.publish(ctx, peerValues, nil)
		}
		if err != nil {
			return err
		}
	}
	if err := p.publish(ctx, peerFinal, m.end()); err != nil {
		return err
	}
	if err := m.await(ctx, func() bool { return m.all(peerFinal) }); err != nil {
		return err
	}
	p.finished, p.stale = true, m.stale // nothing changes it any more
	return nil
}

// renew begins to use the newest values that are here.
func (p *Peers) renew() {
	m := p.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, newest := range m.parked {
		if i == m.self {
			newest = parked{m.owner.version, m.owner.params.Values.Float32s()}
		}
		p.use(i, newest)
	}
}

// use sets the values of an owner's share, unless those here are newer.
func (p *Peers) use(owner int, newest parked) {
	if newest.version > p.versions[owner] {
		p.versions[owner] = newest.version
		p.mail.exchange.pieces(owner, newest.values, p.params.Values.Float32s(), func(mine, theirs []float32) { copy(mine, theirs) })
	}
}

// pieces calls f with every piece of a server's share, in an arena of the workers' layout and
// in one of the server's.
func (x *exchange) pieces(server int, share, arena []float32, f func(mine, theirs []float32)) {
	at, _ := offsets(x.shares[server])
	for k, q := range x.shares[server] {
		from := x.layout.Parameters[q.param].Offset + q.lo
		f(arena[from:from+q.len()], share[at[k]:at[k]+q.len()])
	}
}

// send sends a message to another worker.
func (p *Peers) send(ctx context.Context, to int, tag uint32, b []float32) error {
	p.sent += len(b)
	if err := p.mail.send(ctx, to, tag, b); err != nil {
		return fmt.Errorf("sending to worker %d: %w", to, err)
	}
	return nil
}

// sendAll sends a message to all other workers.
func (p *Peers) sendAll(ctx context.Context, tag uint32, b []float32) error {
	self, n := p.mail.self, p.mail.exchange.workers
	for k := 1; k < n; k++ {
		if err := p.send(ctx, (self+k)%n, tag, b); err != nil {
			return err
		}
	}
	return nil
}

// Total implements trainer.Strategy. Rank 0 evaluates alone.
func (p *Peers) Total(_ context.Context, own nn.Counts) (nn.Counts, error) { return own, nil }

// Done implements trainer.Asynchronous. Workers do not share steps.
func (p *Peers) Done() int { return p.steps }

// Finish implements trainer.Strategy: it waits until all workers have finished. If no Step has
// done so, the values move forward to those that all workers end with.
func (p *Peers) Finish(ctx context.Context, _ *nn.Params) error {
	if err := p.finish(ctx); err != nil {
		return fmt.Errorf("paramserver: waiting until all workers have finished: %w", err)
	}
	p.renew()
	return nil
}

// State implements trainer.Strategy. If it is wanted, the values move forward to those that
// the slots belong to. Gradients that wait for a quorum are not part of it.
func (p *Peers) State(ctx context.Context, wanted bool) (trainer.State, error) {
	state := trainer.State{Step: p.steps, Slots: map[string][]float32{}}
	if !wanted {
		return state, nil
	}
	p.questions++
	answers, err := p.ask(ctx)
	if err != nil {
		return state, fmt.Errorf("paramserver: reading the state of all shares: %w", err)
	}
	x := p.mail.exchange
	for _, slot := range x.layout.Slots {
		state.Slots[slot] = make([]float32, p.params.Values.Len())
	}
	for i, b := range answers {
		n, body := x.lens[i], b[headerLen:]
		p.use(i, parked{getHeader(b).version, body[:n]})
		for k, slot := range x.layout.Slots {
			x.pieces(i, body[(k+1)*n:(k+2)*n], state.Slots[slot], func(mine, theirs []float32) { copy(mine, theirs) })
		}
	}
	return state, nil
}

// ask returns the values and slots of all shares.
func (p *Peers) ask(ctx context.Context) ([][]float32, error) {
	m := p.mail
	m.expect(p.questions)
	header{number: p.questions}.put(p.out)
	if err := p.sendAll(ctx, peerAsk, p.out[:headerLen]); err != nil {
		return nil, err
	}
	err := m.await(ctx, func() bool {
		return !slices.ContainsFunc(m.answers, func(b []float32) bool { return b == nil })
	})
	return m.answers, err
}

// Disconnect ends the exchange of messages, so that the group can make calls again. All workers
// call it, after the last call of any other method but Stale and Close.
func (p *Peers) Disconnect(ctx context.Context) error {
	m := p.mail
	if m == nil {
		return nil
	}
	header{}.put(p.out)
	err := p.sendAll(ctx, peerLeave, p.out[:headerLen])
	if err == nil {
		err = m.await(ctx, func() bool { return m.all(peerLeave) })
	}
	if err == nil {
		err = m.quiet(ctx)
	}
	if err != nil {
		return fmt.Errorf("paramserver: waiting until all workers end: %w", err)
	}
	return p.endMessages(ctx, p.group)
}

// endMessages ends the goroutines, and the messages if they are those of g. Messages of a
// group that is broken need no end.
func (p *Peers) endMessages(ctx context.Context, g *collective.Group) error {
	p.halt()
	m := p.messages
	p.messages = nil
	if m == nil || p.group != g {
		return nil
	}
	if err := m.End(ctx); err != nil {
		return fmt.Errorf("paramserver: ending the exchange between the workers: %w", err)
	}
	return nil
}

// Stale counts the gradients of all workers, once for each owner that has received them. It is
// known after Finish.
func (p *Peers) Stale() Staleness { return p.stale }

// Close implements trainer.Strategy.
func (p *Peers) Close() error {
	p.halt()
	p.params = nil
	return nil
}

// halt ends the goroutines.
func (p *Peers) halt() {
	if p.mail != nil {
		p.mail.close()
		p.mail = nil
	}
}
