package collective

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// DefaultDeadline is how long a call waits for a rank that is alive but does
// not make the call.
const DefaultDeadline = 10 * time.Minute

// Options configure a Group. The zero value is ready to use.
type Options struct {
	// Deadline ends a call whose peers do not make it in time, a sixteenth of it
	// later at most; 0 means DefaultDeadline.
	Deadline time.Duration
	// Order is the order in which AllReduce may fold; the same on every rank.
	Order Order
	// Observer is told of every call, and more if it is a FlightObserver; nil for
	// none.
	Observer Observer
}

// An Observer is told of a group's calls, from the goroutine that made them.
type Observer interface {
	// Called is told after each call: its number, the step given by Mark, how
	// long it took, and its error.
	Called(c Call, seq, step uint64, took time.Duration, err error)
}

// origin is what the times of calls are counted from.
var origin = time.Now()

// A Group runs collective operations over one View. Every rank makes the same
// calls in the same order, from one goroutine at a time. After an error that
// is a *RankError the Group is broken for good, and every later call returns
// that error; errors about arguments leave it whole. The Async forms return at
// once; they are carried out one after another, in the order of the calls.
type Group struct {
	view   View
	id     uint32 // 0, or the Sub of another
	engine Engine
	opts   Options

	onHost bool  // the engine takes all host memory
	limit  limit // lets one call run at a time; guards what follows
	seq    uint64
	pairs  map[[2]int]uint64 // calls from one rank to another, by (from, to)
	ops    [2]Operation      // that are in progress; two are the halves of a SendRecv

	broken  atomic.Pointer[error] // of the first call that failed
	flight  *flight
	step    atomic.Uint64
	closed  atomic.Bool
	backlog backlog
}

// NewGroup makes a Group of an engine, which belongs to it from now on.
func NewGroup(v View, e Engine, o Options) *Group {
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	g := &Group{view: v, engine: e, opts: o, onHost: e.Reaches(Of([]byte(nil))), limit: limit{most: o.Deadline}, flight: newFlight(v.Size())}
	e.Order(o.Order)
	if host := e.Host(); host != nil {
		host.record(&g.flight.Waits)
	}
	return g
}

// Rank is the place of this process in the View, from 0 to Size()-1.
func (g *Group) Rank() int { return g.view.Self }

// Size is the number of ranks.
func (g *Group) Size() int { return g.view.Size() }

// View is the agreed list of members.
func (g *Group) View() View { return g.view }

// Err is what broke the group, the error of its first call that failed; nil
// while it is whole. It may be called at any time, by anybody, and takes no
// notice of a call in progress.
func (g *Group) Err() error {
	if err := g.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// Mark says which step of the caller's work the next calls belong to. It
// travels in headers and shows up in records; it changes nothing else.
func (g *Group) Mark(step uint64) { g.step.Store(step) }

// AllReduce reduces v over all ranks, element by element, and leaves the
// result in v on every rank: the same bits on each, see the package comment.
func (g *Group) AllReduce(ctx context.Context, v Vector, op Op) error {
	if err := reducible(&v, op); err != nil {
		return err
	}
	return g.call(ctx, &Call{Kind: KindAllReduce, DType: v.dtype, Op: op, Offset: uint32(v.arena), Count: uint64(v.n)}, &v, &v, nil)
}

// Broadcast copies v from the root to v on every other rank.
func (g *Group) Broadcast(ctx context.Context, v Vector, root int) error {
	if err := g.rooted(KindBroadcast, root); err != nil {
		return err
	}
	return g.call(ctx, &Call{Kind: KindBroadcast, DType: v.dtype, Root: uint32(root), Count: uint64(v.n)}, &v, &v, nil)
}

// AllGather puts the src of every rank, in rank order, into dst on every rank.
// dst has Size() times as many elements as src. src may be the part of dst
// that is this rank's own.
func (g *Group) AllGather(ctx context.Context, dst, src Vector) error {
	if err := g.fits(KindAllGather, dst, src, dst.n, src.n*g.Size()); err != nil {
		return err
	}
	return g.call(ctx, &Call{Kind: KindAllGather, DType: src.dtype, Count: uint64(src.n)}, &dst, &src, nil)
}

// Barrier returns when every rank has called it.
func (g *Group) Barrier(ctx context.Context) error {
	none := Vector{device: -1}
	return g.call(ctx, &Call{Kind: KindBarrier}, &none, &none, nil)
}

// Abort breaks the group on every rank. They get a *RankError that names this
// rank and the cause.
func (g *Group) Abort(cause error) {
	g.engine.Abort(&RankError{Rank: g.Rank(), Node: g.view.Name(g.Rank()), Epoch: g.view.Epoch, Phase: "failed", Err: cause})
}

// Close leaves the group and frees what it holds. A call in progress returns
// ErrClosed. Closing twice is fine.
func (g *Group) Close() error {
	if g.closed.Swap(true) {
		return nil
	}
	err := g.engine.Close() // ends what is in progress
	g.backlog.end()
	g.limit.close()
	return err
}

// call makes a call in which all ranks take part, with the counts of a V
// operation.
func (g *Group) call(ctx context.Context, c *Call, dst, src *Vector, counts []int) error {
	if err := g.usable(c.Kind, dst, src); err != nil {
		return err
	}
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

// exchange makes the calls of a Send, a Recv, or both. What errors and the
// Observer are told of is the last.
func (g *Group) exchange(ctx context.Context, halves []half) error {
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
func (g *Group) usable(k Kind, dst, src *Vector) error {
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

// begin lets a call begin, alone, until limit.finish, and gives it a context.
func (g *Group) begin(ctx context.Context, c *Call) (limited context.Context, err error) {
	if waited, err := g.backlog.after(ctx); err != nil {
		return nil, g.complete(g.giveUp(err), c, 0, waited)
	}
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

// finish waits for what was started, the last of it o, unless that was an error,
// notes it and completes its error.
func (g *Group) finish(limited context.Context, o *Operation, err error) error {
	began := time.Since(origin) // after the others can know of the call
	g.flight.begin(o, began)
	if err == nil {
		err = g.engine.Wait(limited)
	}
	if err != nil {
		c := o.Call
		c.Method = 0 // which is the engine's
		failure := g.complete(err, &c, o.Seq, time.Since(origin)-began)
		g.broken.Store(&failure) // and not &err: a call that goes well allocates nothing
		err = failure
	}
	g.flight.end(err, g.opts.Observer != nil)
	if g.opts.Observer != nil {
		g.tell(err)
	}
	return err
}

// tell tells the Observer of the call that is over.
func (g *Group) tell(err error) {
	l := g.flight.current
	g.opts.Observer.Called(l.call, l.seq, l.step, l.took, err)
	if o, ok := g.opts.Observer.(FlightObserver); ok {
		g.flight.tell(o)
	}
}

// giveUp breaks the group because a call was not made in time for its context:
// the other ranks make it, and would wait.
func (g *Group) giveUp(cause error) *RankError {
	e := &RankError{Rank: g.Rank(), Phase: "cancelled", Err: cause}
	g.engine.Abort(e)
	return e
}

// complete adds to an error what only the Group knows.
func (g *Group) complete(err error, c *Call, seq uint64, after time.Duration) error {
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

// AllReduce reduces a slice over all ranks of a group, in place. See
// [Group.AllReduce].
func AllReduce[T Element](ctx context.Context, g *Group, s []T, op Op) error {
	return g.AllReduce(ctx, Of(s), op)
}

// Broadcast copies a slice from the root to every rank of a group. See
// [Group.Broadcast].
func Broadcast[T Element](ctx context.Context, g *Group, s []T, root int) error {
	return g.Broadcast(ctx, Of(s), root)
}

// AllGather puts the src of every rank of a group, in rank order, into dst.
// See [Group.AllGather].
func AllGather[T Element](ctx context.Context, g *Group, dst, src []T) error {
	return g.AllGather(ctx, Of(dst), Of(src))
}
