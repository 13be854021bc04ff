package collective

import (
	"context"
	"errors"
	"time"
)

// DefaultDeadline is how long a call waits, by default, for a rank that is
// alive but does not make the call.
const DefaultDeadline = 10 * time.Minute

// Options configure a Group. The zero value is ready to use.
type Options struct {
	// Deadline ends a call whose peers do not make it in time, at most 1/16
	// later. 0 means DefaultDeadline.
	Deadline time.Duration
	// Order is the order in which AllReduce may fold. It must be the same on
	// every rank.
	Order Order
	// Observer gets every call, and its record too if it is a FlightObserver.
	// nil means none.
	Observer Observer
}

// An Observer gets a group's calls, in the goroutine that carries them out: the caller's, or for
// Async forms that of the group. It does not learn of Messages, whose Next only the flight record
// shows. A Group of Sub passes its calls to the same Observer, with numbers of its own.
type Observer interface {
	// Called is called after each call with its number, the step given by Mark,
	// its duration and its error.
	Called(c Call, seq, step uint64, took time.Duration, err error)
}

// origin is the time from which the times of calls are counted.
var origin = time.Now()

// A Group runs collective operations over one View. Every rank makes the same
// calls in the same order, from one goroutine at a time. The Async forms return
// at once; their calls run one after another, in the order in which they were
// made.
//
// After a *RankError the Group is broken for good, on every rank, and every later call returns
// that error. If the context of a call ends, during the call or before it, that is such an error.
// Errors about arguments do not break the Group. If only this rank has one, the
// others wait for its call: pass it to Abort, unless you make the right call.
type Group struct {
	caller
	id uint32 // 0, or the id of a Sub
}

// NewGroup makes a Group that uses, owns and closes the engine e.
func NewGroup(v View, e Engine, o Options) *Group {
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	g := &Group{caller: caller{
		callBuilder: callBuilder{v}, engine: e, onHost: e.Reaches(Of([]byte(nil))),
		watchdog: watchdog{most: o.Deadline}, flight: newFlight(v.Size()), opts: o,
	}}
	g.recorder, _ = o.Observer.(FlightObserver)
	e.Order(o.Order)
	if host := e.Host(); host != nil {
		host.record(&g.flight.Waits)
	}
	return g
}

// Mark sets the step of the trainer that the next calls belong to. Headers
// carry it and records show it; it has no other effect.
func (g *Group) Mark(step uint64) { g.step.Store(step) }

// AllReduce reduces v over all ranks, element by element, and leaves the result
// in v. Every rank gets the same bits; see the package comment.
func (g *Group) AllReduce(ctx context.Context, v Vector, op Op) error {
	var c Call
	if err := g.allReduce(&c, &v, op); err != nil {
		return err
	}
	return g.call(ctx, &c, &v, &v, nil)
}

// Broadcast copies v from the root to v on every other rank. The root may return
// before the others have called. If another rank is root, too, that is an error of this
// call or the next.
func (g *Group) Broadcast(ctx context.Context, v Vector, root int) error {
	var c Call
	if err := g.broadcast(&c, &v, root); err != nil {
		return err
	}
	return g.call(ctx, &c, &v, &v, nil)
}

// AllGather puts the src of every rank, in rank order, into dst on every rank.
// dst has Size() times as many elements as src. src may be this rank's own part
// of dst.
func (g *Group) AllGather(ctx context.Context, dst, src Vector) error {
	var c Call
	if err := g.allGather(&c, &dst, &src); err != nil {
		return err
	}
	return g.call(ctx, &c, &dst, &src, nil)
}

// Barrier returns when every rank has called it.
func (g *Group) Barrier(ctx context.Context) error {
	none := Vector{device: -1}
	return g.call(ctx, &Call{Kind: KindBarrier}, &none, &none, nil)
}

// Abort breaks the group on every rank. All ranks get a *RankError that names
// this rank and the cause, unless the group was broken before. cause may be nil.
func (g *Group) Abort(cause error) {
	if cause == nil {
		cause = errAborted
	}
	g.engine.Abort(&RankError{Rank: g.Rank(), Node: g.view.Name(g.Rank()), Epoch: g.view.Epoch, Phase: "failed", Err: cause})
}

// errAborted is the cause of an Abort without one.
var errAborted = errors.New("it aborted the group")

// Close leaves the group and frees its resources. A call in progress returns
// ErrClosed. Later calls of Close do nothing, nor does that of a nil Group, such as a
// rank gets from Sub that is in no group.
func (g *Group) Close() error {
	if g == nil || g.closed.Swap(true) {
		return nil
	}
	err := g.engine.Close() // ends what is in progress
	g.backlog.end()
	g.watchdog.close()
	return err
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
