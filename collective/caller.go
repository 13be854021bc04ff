package collective

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// A caller makes the calls of a group, one at a time. Synchronous and
// asynchronous calls alike start with begin and end with finish.
type caller struct {
	callBuilder
	engine   Engine
	opts     Options
	recorder FlightObserver // opts.Observer, if it implements FlightObserver

	onHost   bool     // the engine reaches all host memory
	watchdog watchdog // lets one call run at a time; guards what follows
	seq      uint64
	pairs    map[[2]int]uint64 // calls from one rank to another, by (from, to)
	ops      [2]Operation      // in progress; a SendRecv has two

	broken  atomic.Pointer[error] // the error of the first call that failed
	flight  *flight
	step    atomic.Uint64
	closed  atomic.Bool
	backlog backlog
}

// call makes a call in which all ranks take part, after the asynchronous calls
// made before it. counts are those of a V operation.
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
	defer g.watchdog.finish()
	g.seq++
	o := &g.ops[0]
	o.set(g.seq, g.step.Load(), c, dst, src)
	o.Counts = counts
	return g.finish(limited, o, g.engine.Start(o))
}

// callSendRecv makes the calls of a Send, a Recv, or both. Errors and the Observer
// report the last half that was started.
func (g *caller) callSendRecv(ctx context.Context, halves []half) error {
	var c Call
	for _, h := range halves {
		if peer := h.peer(g.Rank()); peer < 0 || peer >= g.Size() || h.from == h.to {
			return fmt.Errorf("collective: there can be no message from rank %d to rank %d: use two different ranks from 0 to %d", h.from, h.to, g.Size()-1)
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
	defer g.watchdog.finish()
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

// usable checks vectors before anything is sent, so that a caller's mistake
// does not break the group.
func (g *caller) usable(k Kind, dst, src *Vector) error {
	if k == KindBarrier || g.onHost && dst.onHost() && (src == dst || src.onHost()) {
		return nil
	}
	for _, v := range []*Vector{dst, src} {
		if v.dtype.Size() == 0 {
			return zeroVector(k)
		}
		if !g.engine.Reaches(*v) {
			return fmt.Errorf("collective: %v of %v: %w: this group's engine cannot access that memory", k, *v, ErrUnsupported)
		}
	}
	return nil
}

// turn waits until all earlier asynchronous calls are over.
func (g *caller) turn(ctx context.Context, c *Call) error {
	if g.backlog.pending.Load() == 0 {
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

// giveUp breaks the group because a call was not made before its context ended.
// The other ranks do make the call, and would wait. If the group is broken already, the
// error is what broke it.
func (g *caller) giveUp(c *Call, waited time.Duration, cause error) error {
	if host := g.engine.Host(); host != nil {
		if broke := host.Err(); broke != nil {
			return g.fail(c, 0, waited, broke)
		}
	}
	e := &RankError{Rank: g.Rank(), Phase: "cancelled", Err: cause}
	err := g.fail(c, 0, waited, e) // before a call in progress fails because of the Abort
	g.engine.Abort(e)
	return err
}

// begin starts a call and returns its context. The call is then the only one
// until watchdog.finish.
func (g *caller) begin(ctx context.Context, c *Call) (limited context.Context, err error) {
	limited, alone := g.watchdog.begin(ctx)
	if !alone {
		return nil, g.busy(c)
	}
	if g.refuses() {
		g.watchdog.finish()
		return nil, g.refusal(c)
	}
	if ctx.Err() != nil { // before the call, so no other rank is to blame, even if ctx had a deadline
		g.watchdog.expire(ctx)
		g.engine.Abort(&RankError{Rank: g.Rank(), Phase: "cancelled", Err: context.Cause(ctx)})
	}
	return limited, nil
}

// reserve keeps calls from beginning, until watchdog.finish.
func (g *caller) reserve(c *Call) error {
	if !g.watchdog.reserve() {
		return g.busy(c)
	}
	err := g.refusal(c)
	if err != nil {
		g.watchdog.finish()
	}
	return err
}

// refuses reports whether no call can begin any more.
func (g *caller) refuses() bool { return g.closed.Load() || g.broken.Load() != nil }

// refusal returns why no call can begin any more, or nil.
func (g *caller) refusal(c *Call) error {
	if g.closed.Load() {
		return fmt.Errorf("collective: %v on rank %d: %w", *c, g.Rank(), ErrClosed)
	}
	return g.Err()
}

// busy returns why a call cannot begin while another call, or Messages, are in
// progress.
func (g *caller) busy(c *Call) error {
	if g.watchdog.state.Load() != reserved {
		return fmt.Errorf("collective: %v on rank %d: %w", *c, g.Rank(), ErrConcurrent)
	}
	if err := g.refusal(c); err != nil {
		return err
	}
	return fmt.Errorf("collective: %v on rank %d: %w", *c, g.Rank(), ErrMessaging)
}

// finish ends a call. It waits for the operations that were started, unless
// starting one failed with err. o is the last of them.
func (g *caller) finish(limited context.Context, o *Operation, err error) error {
	began := g.flight.clock.Now() // read the clock after Start, which can already show the call to other ranks
	g.flight.begin(o, began)
	if err == nil {
		err = g.engine.Wait(limited)
	}
	if err != nil {
		c := o.Call
		c.Method = 0 // the engine's choice, not part of the caller's call
		err = g.fail(&c, o.Seq, g.flight.passed(began), err)
	}
	g.flight.end(err, g.opts.Observer != nil)
	if g.opts.Observer != nil {
		g.flight.report(g.opts.Observer, g.recorder, err)
	}
	return err
}

// fail returns the error of a call that failed after some time. The first
// failure breaks the group.
func (g *caller) fail(c *Call, seq uint64, after time.Duration, err error) error {
	failure := g.complete(c, seq, after, err)
	g.broken.CompareAndSwap(nil, &failure)
	return failure
}

// complete adds to an error what only the group knows: the call, the epoch and
// the culprit's name.
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
	e.Op, e.Seq, e.Epoch, e.After = *c, seq, g.view.Epoch, after
	if e.Rank >= 0 { // otherwise Sub has set it
		e.Node = g.view.Name(e.Rank)
	}
	return &e
}

// Err returns the error of the first call that failed, which broke the group,
// or nil. Any goroutine may call it at any time, also during a call.
func (g *caller) Err() error {
	if err := g.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// Lost returns the error that every later call will return because a rank has
// failed, or nil. Unlike Err, it does not need a call that has failed. It does
// not communicate, and may not know of a failure yet. Any goroutine may call it
// at any time.
func (g *caller) Lost() error {
	if err := g.Err(); err != nil {
		return err
	}
	host := g.engine.Host()
	if host == nil {
		return nil
	}
	err := host.Err()
	if found := (*RankError)(nil); errors.As(err, &found) {
		return g.complete(&Call{}, 0, 0, err)
	}
	return err
}
