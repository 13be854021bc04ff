package paramserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// Async is the strategy in which each worker pushes a gradient to the servers when it has
// one, and gets the newest values as soon as the servers have applied it. Workers do not wait
// for each other, unless Policy says so. A step of the training is an update of a server, so
// the workers share the steps, see trainer.Asynchronous.
//
// Servers update on their own. Each counts its updates, and one may be ahead of another by as
// many gradients as there are workers. When the training ends, all have made the same number,
// unless it was stopped.
//
// All workers end with the same values. If a rank fails, the others get an error that names
// it. With Servers.Group and Servers.Regroup, they continue without a worker that is lost, see
// Servers.
type Async struct {
	sync     *Sync
	policy   Policy
	survival survival

	*worker
	background *background       // nil before Start, and after Disconnect or Close
	messages   messages          // nil before Start and after Disconnect
	group      *collective.Group // of messages
	stale      Staleness         // set by Finish
}

var _ trainer.Asynchronous = (*Async)(nil)

// NewAsync makes the strategy; see NewSync for the arguments. Start returns an error if p is
// out of range.
func NewAsync(b nn.Backend, o optim.Optimizer, s Servers, p Policy) *Async {
	a := &Async{policy: p}
	if s.Group != nil {
		a.survival = survival{s.Regroup, s.Lost}
	}
	s.Regroup = nil // the servers cannot be started again
	a.sync = NewSync(b, o, s)
	return a
}

// Start implements trainer.Strategy. Rank 0 gives its values to all ranks, and to the
// servers also the optimizer's state.
func (a *Async) Start(ctx context.Context, start trainer.Start) (trainer.Place, error) {
	if err := a.policy.Check(); err != nil {
		return trainer.Place{}, err
	}
	r, err := a.sync.ranks(start.Group)
	if err != nil {
		return trainer.Place{}, err
	}
	if err := a.policy.CheckServers(r.workers, len(r.servers)); err != nil {
		return trainer.Place{}, err
	}
	if err := a.endMessages(ctx, a.sync.groupOf(start.Group)); err != nil {
		return trainer.Place{}, err
	}
	a.sync.asynchronous = &asynchronous{a.policy, start.Steps}
	place, err := a.sync.Start(ctx, start)
	if err != nil {
		return place, err
	}
	x := a.sync.exchange
	all, first, err := newPosts(ctx, x, a.survival)
	if err != nil {
		return place, err
	}
	a.messages, a.group = first.messages, first.group
	a.worker = newWorker(all, first, start.Params, place.Step)
	a.background = &background{posts: all}
	if x.share != nil {
		a.background.serve(first, place.Step)
	}
	return place, nil
}

// most returns the length of the longest message between these ranks.
func (x *exchange) most() int {
	return headerLen + max(slices.Max(x.lens)*(1+len(x.layout.Slots)), 2*staleWords)
}

// Step implements trainer.Strategy. The Report covers all updates since the last one of this
// rank, made of the gradients of any.
func (a *Async) Step(ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
	if err := a.sync.backend.Sync(ctx); err != nil {
		return trainer.Report{}, err
	}
	begin := time.Now()
	if err := finite(a.sync.exchange.group, p, s); err != nil {
		return trainer.Report{}, err
	}
	a.group.Mark(uint64(s.Index))
	report, err := a.push(ctx, p, s)
	if err != nil {
		return report, a.named(fmt.Errorf("paramserver: step %d: %w", s.Index+1, err))
	}
	report.Bytes, report.Buckets = 4*p.Grads.Len(), 1
	report.Exchange = time.Since(begin)
	return report, nil
}

// named returns the error of the server on this rank, if there is one, because the group then
// blames this rank.
func (a *Async) named(err error) error {
	if b := a.background; b != nil {
		select {
		case served := <-b.served:
			if served != nil {
				return served
			}
		default:
		}
	}
	return err
}

// Total implements trainer.Strategy. Rank 0 evaluates alone.
func (a *Async) Total(_ context.Context, own nn.Counts) (nn.Counts, error) { return own, nil }

// Finish implements trainer.Strategy: it waits until all workers have finished.
func (a *Async) Finish(ctx context.Context, _ *nn.Params) error {
	stale, err := a.finish(ctx)
	if err != nil {
		return a.named(fmt.Errorf("paramserver: waiting until all workers have finished: %w", err))
	}
	a.stale = stale
	return nil
}

// State implements trainer.Strategy. If it is wanted, the values move forward to those that
// the slots belong to.
func (a *Async) State(ctx context.Context, wanted bool) (trainer.State, error) {
	state := trainer.State{Step: a.Done(), Slots: map[string][]float32{}}
	if !wanted {
		return state, nil
	}
	if err := a.pull(ctx, state.Slots); err != nil {
		return state, a.named(fmt.Errorf("paramserver: reading the state of the servers: %w", err))
	}
	state.Step = a.Done()
	return state, nil
}

// Disconnect ends the exchange of messages, so that the groups can make calls again. All
// workers call it, after the last call of any other method but Stale and Close.
// Servers of Servers.Group then wait for End, or for the Start of another strategy.
//
// With Servers.Regroup, the groups make no calls again, and the servers return. A rank that is
// lost meanwhile is no error, because no rank needs another any more.
func (a *Async) Disconnect(ctx context.Context) error {
	if a.background == nil {
		return nil
	}
	err := a.disconnect(ctx)
	if err != nil && a.survival.survives() && a.post.group.Err() != nil && ctx.Err() == nil {
		return a.halt()
	}
	return err
}

func (a *Async) disconnect(ctx context.Context) error {
	if err := a.end(ctx); err != nil {
		return a.named(fmt.Errorf("paramserver: waiting until the servers end: %w", err))
	}
	a.messages, a.group = a.post.messages, a.post.group
	return a.endMessages(ctx, a.group)
}

// endMessages ends the goroutines, and the messages if they are those of g. Messages of a
// group that is broken need no end.
func (a *Async) endMessages(ctx context.Context, g *collective.Group) error {
	if err := a.halt(); err != nil {
		return err
	}
	m := a.messages
	a.messages = nil
	if m == nil || a.group != g {
		return nil
	}
	if err := m.End(ctx); err != nil {
		return fmt.Errorf("paramserver: ending the exchange with the servers: %w", err)
	}
	return nil
}

// Stale counts the gradients of all workers, as the first server has seen them. It is known
// after Finish.
func (a *Async) Stale() Staleness {
	return a.stale
}

// Close implements trainer.Strategy.
func (a *Async) Close() error {
	_ = a.halt()
	a.worker = nil
	return nil
}

// halt ends the goroutines of this rank, and returns the error of the server among them.
func (a *Async) halt() error {
	b := a.background
	if b == nil {
		return nil
	}
	a.background = nil
	return b.end()
}

// A background is what a worker runs in other goroutines: it receives, and may be a server.
type background struct {
	posts  *posts
	cancel context.CancelFunc
	served chan error // of the server, if there is one
}

// serve makes this rank a server, too.
func (b *background) serve(p *post, step int) {
	x := b.posts.exchange
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(context.Background())
	b.served = make(chan error, 1)
	// The worker computes at the same time, and a backend belongs to one goroutine.
	x.share.backend = cpu.New(cpu.Options{})
	s := newServer(b.posts, p, step)
	b.posts.done.Go(func() {
		defer x.share.backend.Close()
		err := s.serve(ctx)
		var lost *collective.RankError
		if err != nil && ctx.Err() == nil && !errors.As(err, &lost) {
			x.group.Abort(err)
		}
		b.served <- err
	})
}

// end ends the goroutines.
func (b *background) end() error {
	if b.cancel != nil {
		b.cancel()
	}
	b.posts.close()
	if b.served == nil {
		return nil
	}
	select {
	case err := <-b.served:
		if !errors.Is(err, context.Canceled) {
			return err
		}
	default: // named has taken it
	}
	return nil
}

// serve is the phase of Serve in which workers send messages.
func (x *exchange) serve(ctx context.Context, step int, v survival) error {
	all, first, err := newPosts(ctx, x, v)
	if err != nil {
		return err
	}
	defer all.close()
	s := newServer(all, first, step)
	if err := s.serve(ctx); err != nil {
		var lost *collective.RankError
		if s.post != first && !errors.As(err, &lost) {
			s.post.group.Abort(err)
		}
		return err
	}
	x.share.state.Step = step // from which the workers count their commands
	all.close()
	err = s.End(ctx)
	if ctx.Err() == nil {
		err = s.needed(err)
	}
	return err
}
