package paramserver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// Serve is a server of Sync or Async. The first ranks of g are the workers, whose Servers.Group g is;
// all others call Serve. The server updates its share on b with o, which must be the
// optimizer of the workers. It waits while the workers have no Sync or use another strategy,
// and returns nil after their End.
//
// If a rank of g fails, Serve returns a *collective.RankError that names it. If something
// fails here, Serve passes the error to Group.Abort, so that the others do not wait.
func Serve(ctx context.Context, g *collective.Group, workers int, b nn.Backend, o optim.Optimizer) error {
	return ServeKept(ctx, g, workers, Keeper{Backend: b, Optimizer: o})
}

// A Keeper is a server that can be started again after it was killed.
type Keeper struct {
	Backend   nn.Backend
	Optimizer optim.Optimizer
	// Path is a file in which the server keeps the last two steps of its share. Nobody else
	// may use it. "" keeps nothing.
	Path string
	// Regroup is Servers.Regroup of Async. It must be set on all ranks or none. The server
	// then returns after Async.Disconnect of all workers, without End.
	Regroup func(ctx context.Context, cause error) (*collective.Group, error)
}

// ServeKept is Serve for a server that keeps its share. After a server was lost, all servers
// are started again, each with the same rank and path, and join a new group of all ranks:
// see Servers.Regroup. They continue from the newest step that all of them have kept. No
// worker is ahead of it, because a server keeps a step before it sends the values.
func ServeKept(ctx context.Context, g *collective.Group, workers int, k Keeper) error {
	if workers < 1 || workers > g.Rank() {
		return fmt.Errorf("paramserver: rank %d of %d cannot be a server after %d workers", g.Rank(), g.Size(), workers)
	}
	err := serve(ctx, ranks{g, workers, span(workers, g.Size())}, updater{k.Backend, k.Optimizer, k.Path}, survival{regroup: k.Regroup})
	var lost *collective.RankError
	var sums *notFiniteError
	if err != nil && !errors.As(err, &lost) && !errors.As(err, &sums) {
		g.Abort(err)
	}
	return err
}

// End ends the servers of g, whose first ranks are the workers: Serve returns nil. All
// workers call it, once, after their last call of a Sync. The servers need not have started.
func End(ctx context.Context, g *collective.Group, workers int) error {
	_, err := commands(ctx, ranks{group: g, workers: workers}, command{verb: verbEnd})
	return err
}

func serve(ctx context.Context, r ranks, u updater, v survival) error {
	var x *exchange
	defer func() { x.close() }()
	for {
		all, err := commands(ctx, r, command{})
		if err != nil {
			return err
		}
		c := all[0]
		if c.verb == verbEnd {
			return nil
		}
		r.group.Mark(uint64(c.step))
		if c.verb != verbStart && c.verb != verbResume && (x == nil || int64(x.share.state.Step) != c.step) {
			return fmt.Errorf("paramserver: the workers are at %v %d, which does not follow what this server has done: run the same version on every machine", c.verb, c.step)
		}
		switch c.verb {
		case verbStart:
			x.close()
			if x, err = begin(ctx, r, u, c); err == nil {
				err = x.load(ctx, c.step, nil)
			}
			if err == nil && x.layout.Asynchronous != nil {
				err = x.serve(ctx, int(c.step), v)
				if v.survives() {
					return err
				}
			}
		case verbResume:
			x.close()
			if x, err = begin(ctx, r, u, c); err == nil {
				_, err = x.resume(ctx, c.step)
			}
		case verbStep:
			err = x.serveStep(ctx, c)
		case verbState:
			err = x.slots(ctx, func(worker int) bool { return all[worker].wanted }, func(string) {})
		}
		if err != nil {
			return err
		}
	}
}

// serveStep is step on a server. If the workers do not take the step, because their losses,
// gradients or values differ from what they must be, neither does the server.
func (x *exchange) serveStep(ctx context.Context, c command) error {
	_, err := x.step(ctx, c, contribution{})
	var numbers *trainer.NotFiniteError
	var diverged *trainer.DivergedError
	if errors.As(err, &numbers) || errors.As(err, &diverged) {
		return nil
	}
	return err
}

// begin receives the layout and makes the exchange of a server.
func begin(ctx context.Context, r ranks, u updater, c command) (*exchange, error) {
	encoded := make([]byte, c.number)
	if err := collective.Broadcast(ctx, r.group, encoded, 0); err != nil {
		return nil, fmt.Errorf("paramserver: receiving the layout of the parameters: %w", err)
	}
	l, err := decodeLayout(encoded)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(l.Slots, u.optimizer.Slots()) {
		return nil, fmt.Errorf("paramserver: the workers' optimizer keeps %q and this server's %q: give the same config on every machine", l.Slots, u.optimizer.Slots())
	}
	x := newExchange(r, l, u)
	return x, x.share.open(encoded)
}
