package collective

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// A caller makes the calls of a group, one at a time. Each begins with begin and
// ends with finish, whoever made it.
type caller struct {
	inView
	engine   Engine
	opts     Options
	recorder FlightObserver // opts.Observer, if it is one

	onHost bool  // the engine takes all host memory
	limit  limit // lets one call run at a time; guards what follows
	seq    uint64
	pairs  map[[2]int]uint64 // calls from one rank to another, by (from, to)
	ops    [2]Operation      // that are in progress; two are the halves of a SendRecv

	broken  atomic.Pointer[error] // by the first call that failed
	flight  *flight
	step    atomic.Uint64
	closed  atomic.Bool
	backlog backlog
}

// call makes a call in which all ranks take part, with the counts of a V
// operation, after the asynchronous calls that were made before it.
func (g *caller) call(ctx context.Context, c *Call, dst, src *Vector, counts []int) error {
	if err := g.usable(c.Kind, dst, src); err != nil {
		return err
	}
	if err := g.turn(ctx, c); err != nil {
		return err
	}
	return g.carryOut(ctx, c, dst, src, counts)
}

// carryOut makes a call whose turn it is.
func (g *caller) carryOut(ctx context.Context, c *Call, dst, src *Vector, counts []int) error {
	limited, err := g.begin(ctx, c)
	if err != nil {
		return err
	}
	defer g.limit.finish()
	g.seq++
	o := &g.ops[0]
	o.set(g.seq, g.step.Load(), c, dst, src)
	o.Counts = counts
	return g.finish(limited, o, g.engine.Start(o))
}

// exchange makes the calls of a Send, a Recv, or both. Errors and the Observer are
// told of the last.
func (g *caller) exchange(ctx context.Context, halves []half) error {
	var c Call
	for _, h := range halves {
		if peer := h.peer(g.Rank()); peer < 0 || peer >= g.Size() || h.from == h.to {
			return fmt.Errorf("collective: Send from rank %d to rank %d: they are two ranks from 0 to %d", h.from, h.to, g.Size()-1)
		}
		if err := g.usable(KindSend, &h.v, &h.v); err != nil {
			return err
		}
		c = h.call()
	}
	if err := g.turn(ctx, &c); err != nil {
		return err
	}
	limited, err := g.begin(ctx, &c)
	if err != nil {
		return err
	}
	defer g.limit.finish()
	var o *Operation
	for i, h := range halves {
		pair := [2]int{h.from, h.to}
		if g.pairs == nil {
			g.pairs = map[[2]int]uint64{}
		}
		g.pairs[pair]++
		o, c = &g.ops[i], h.call()
		o.set(g.pairs[pair], g.step.Load(), &c, &h.v, &h.v)
		if err = g.engine.Start(o); err != nil {
			break
		}
	}
	return g.finish(limited, o, err)
}

// usable checks vectors before anything is sent, so that a mistake leaves the
// group whole.
func (g *caller) usable(k Kind, dst, src *Vector) error {
	if k == KindBarrier || g.onHost && dst.onHost() && src.onHost() {
		return nil
	}
	for _, v := range []*Vector{dst, src} {
		if v.dtype.Size() == 0 {
			return fmt.Errorf("collective: %v of a zero Vector: make one with Of", k)
		}
		if !g.engine.Reaches(*v) {
			return fmt.Errorf("collective: %v of %v: %w: this group does not reach that memory", k, *v, ErrUnsupported)
		}
	}
	return nil
}

// turn waits until the asynchronous calls made so far are over.
func (g *caller) turn(ctx context.Context, c *Call) error {
	if !g.backlog.used.Load() {
		return nil
	}
	return g.queueUp(ctx, c)
}

func (g *caller) queueUp(ctx context.Context, c *Call) error {
	if waited, err := g.backlog.after(ctx); err != nil {
		return g.giveUp(c, waited, err)
	}
	return nil
}

// giveUp breaks the group because a call was not made in time for its context:
// the other ranks make it, and would wait.
func (g *caller) giveUp(c *Call, waited time.Duration, cause error) error {
	e := &RankError{Rank: g.Rank(), Phase: "cancelled", Err: cause}
	err := g.fail(c, 0, waited, e) // before a call in progress fails because of the Abort
	g.engine.Abort(e)
	return err
}

// begin lets a call begin, alone, until limit.finish, and gives it a context.
func (g *caller) begin(ctx context.Context, c *Call) (limited context.Context, err error) {
	limited, alone := g.limit.begin(ctx)
	switch {
	case !alone:
		return nil, fmt.Errorf("collective: %v on rank %d: %w", *c, g.Rank(), ErrConcurrent)
	case g.closed.Load():
		err = fmt.Errorf("collective: %v on rank %d: %w", *c, g.Rank(), ErrClosed)
	default:
		err = g.Err()
	}
	if err != nil {
		g.limit.finish()
	}
	return limited, err
}

// finish ends every call that began. It waits for the operations that were
// started, the last of them o, unless starting failed with err.
func (g *caller) finish(limited context.Context, o *Operation, err error) error {
	began := time.Since(origin) // after the others can know of the call
	g.flight.begin(o, began)
	if err == nil {
		err = g.engine.Wait(limited)
	}
	if err != nil {
		c := o.Call
		c.Method = 0 // which is the engine's
		err = g.fail(&c, o.Seq, time.Since(origin)-began, err)
	}
	g.flight.end(err, g.opts.Observer != nil)
	if g.opts.Observer != nil {
		l := g.flight.current
		g.opts.Observer.Called(l.call, l.seq, l.step, l.took, err)
		if g.recorder != nil {
			g.flight.tell(g.recorder)
		}
	}
	return err
}

// fail is the error of a call that has failed after some time. The first breaks
// the group.
func (g *caller) fail(c *Call, seq uint64, after time.Duration, err error) error {
	failure := g.complete(c, seq, after, err)
	g.broken.CompareAndSwap(nil, &failure)
	return failure
}

// complete adds to an error what only the group knows.
func (g *caller) complete(c *Call, seq uint64, after time.Duration, err error) error {
	var found *RankError
	if !errors.As(err, &found) {
		var differ *MismatchError
		if !errors.As(err, &differ) {
			return fmt.Errorf("collective: %v #%d on rank %d: %w", *c, seq, g.Rank(), err)
		}
		found = &RankError{Rank: differ.Peer, Phase: "mismatch", Err: err}
	}
	e := *found
	e.Op, e.Seq, e.Epoch, e.Node, e.After = *c, seq, g.view.Epoch, g.view.Name(e.Rank), after
	return &e
}

// Err is what broke the group, the error of its first call that failed; nil
// while it is whole. It may be called at any time, by anybody, and takes no
// notice of a call in progress.
func (g *caller) Err() error {
	if err := g.broken.Load(); err != nil {
		return *err
	}
	return nil
}
