package collective

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// A HostEngine is the Engine for host memory. It carries out the algorithms of
// package schedule over a Transport, one call at a time, in the goroutine that
// calls Wait. Engines for other memory, such as a GPU's, are built on it.
type HostEngine struct {
	executor // carries out the calls; the engine begins and ends them

	view    View
	group   uint32    // the group's id in headers; 0 is the whole View
	can     Abilities // of the transport
	parent  *HostEngine
	divided bool // Sub has been called

	started []*Operation // given to Start, not yet finished by Wait
	agrees  bool         // compare the call without carrying it out; see Agree
	shown   bool         // started has one, and Abilities.Show has announced it

	aborted      atomic.Pointer[RankError] // set by Abort, because a group of one has no peer that would report it
	contextWatch contextWatch
	active       activeCall
	messaging    sync.RWMutex // read-locked while Messages use the transport; locked for good by Close
	closed       sync.Once
}

var _ Engine = (*HostEngine)(nil)

// OverTransport makes the engine of a View over a Transport, which the engine
// owns and closes.
func OverTransport(v View, t Transport) *HostEngine {
	can := AbilitiesOf(t)
	e := &HostEngine{view: v, can: can, active: activeCall{left: make(chan struct{}, 1)}}
	e.copier = copier{wire: newWire(v, t, can), situation: situationOf(v, can.Reduce != nil), reduces: can.Reduce, lends: can.Lend}
	return e
}

// ByMethod is OverTransport for tests and measurements. Every AllReduce uses
// the given method, whatever its size, if the method supports it.
func ByMethod(v View, t Transport, m schedule.Method) *HostEngine {
	e := OverTransport(v, t)
	e.situation.Force = m
	return e
}

// Host is part of Engine.
func (e *HostEngine) Host() *HostEngine { return e }

// Order is part of Engine.
func (e *HostEngine) Order(o Order) { e.situation.Any = o == AnyOrder }

// Reaches is part of Engine. The engine reaches all host memory.
func (e *HostEngine) Reaches(v Vector) bool { _, ok := v.Host(); return ok }

// fillHeader fills in the part of an operation's header that the engine owns.
func (e *HostEngine) fillHeader(o *Operation) {
	o.Job, o.Epoch, o.Group = e.view.Job, e.view.Epoch, e.group
}

// Start is part of Engine.
func (e *HostEngine) Start(o *Operation) error {
	e.fillHeader(o)
	e.started = append(e.started, o)
	if e.can.Show != nil {
		return e.show(o)
	}
	return nil
}

// show announces a call to the other ranks as early as possible, if the
// transport carries out all of it.
func (e *HostEngine) show(o *Operation) error {
	var reduced int // bytes
	switch k := o.Call.Kind; {
	case k == KindAllReduce && o.inPlace() && e.situation.AlwaysShared():
		reduced = o.markShared()
	case k == KindBarrier && e.reducer() != nil:
		o.mark(0)
	case k != KindAllReduce && k != KindBarrier && e.exchanges(o) && o.most(e.size) <= ExchangeBytes:
		o.mark(o.most(e.size))
	default:
		return nil
	}
	// The first call has no context yet. A call that is about to fail is not announced, so
	// that it fails on the other ranks too: a Group aborts the engine before a call whose
	// context has ended.
	if e.contextWatch.ctx == nil || e.aborted.Load() != nil {
		return nil
	}
	e.active.enter(&o.Header)
	if e.active.closing.Load() {
		e.active.leave()
		e.started = e.started[:0]
		return ErrClosed
	}
	e.can.Show(o)
	e.shown = true
	e.reduced += reduced
	return nil
}

// Wait is part of Engine.
func (e *HostEngine) Wait(ctx context.Context) error {
	if len(e.started) == 0 {
		return nil
	}
	var err error
	if e.shown { // its context is already watched, and it sends no messages; see Abilities.Show
		if err = e.performShared(e.started[0]); err != nil {
			e.blame(err)
		}
	} else if err = e.admit(ctx); err == nil {
		err = e.end(e.performAll())
	}
	e.started, e.agrees, e.shown = e.started[:0], false, false
	e.active.leave()
	return err
}

// admit lets the calls begin, or returns why they cannot. The end of ctx breaks
// the transport, which ends the calls, so the code below takes no context.
func (e *HostEngine) admit(ctx context.Context) error {
	e.active.enter(&e.started[len(e.started)-1].Header)
	if e.active.closing.Load() {
		if e.parent != nil { // the Close of the Sub did not see the call, so the other ranks would wait for it
			e.t.(*subTransport).breakOff()
		}
		return ErrClosed
	}
	e.watch(ctx)
	if ctx.Err() != nil {
		e.Abort(e.tooLate(ctx))
	}
	return e.abortedHere()
}

// abortedHere returns why this process has aborted the engine or, for a Sub, the
// engine around it, or nil.
func (e *HostEngine) abortedHere() error {
	if cause := e.aborted.Load(); cause != nil {
		return cause
	}
	if e.parent == nil {
		return nil
	}
	return e.t.(*subTransport).translate(e.parent.abortedHere())
}

// performAll runs the calls one after another, except for the two halves of a
// SendRecv. Those run together, because otherwise the ranks of a ring would
// wait for each other.
func (e *HostEngine) performAll() error {
	e.calls++
	if s := e.started; len(s) == 2 && s[0].Call.Kind == KindSend && s[1].Call.Kind == KindSend {
		return e.sendRecv(s[0], s[1])
	}
	if e.agrees {
		return e.barrier(e.started[0])
	}
	for _, o := range e.started {
		if err := e.perform(o); err != nil {
			return err
		}
	}
	return nil
}

// end ends the calls, which returned err.
func (e *HostEngine) end(err error) error {
	e.waits.nothing()
	e.forget()
	if err != nil {
		e.blame(err)
	}
	if sendErr := e.flush(); err == nil {
		err = sendErr
	}
	if e.agrees { // the caller may do other work before its next call here
		e.contextWatch.forget()
	}
	return err
}

// blame reports to the other ranks a failure that the transport may not know of
// yet.
func (e *HostEngine) blame(err error) {
	var known *RankError
	var differ *MismatchError
	switch {
	case errors.As(err, &known):
		e.t.Abort(known)
	case errors.As(err, &differ):
		e.t.Abort(&RankError{Rank: differ.Peer, Phase: "mismatch", Err: err})
	case !errors.Is(err, ErrClosed):
		e.t.Abort(&RankError{Rank: e.rank, Phase: "failed", Err: err})
	}
}

// watch makes the end of ctx break the transport.
func (e *HostEngine) watch(ctx context.Context) {
	if ctx.Done() != e.contextWatch.done {
		e.contextWatch.follow(ctx, func() { e.t.Abort(e.tooLate(ctx)) })
	}
}

// tooLate returns the culprit for the end of ctx: this rank if its caller
// cancelled, and otherwise the rank that has not made the call.
func (e *HostEngine) tooLate(ctx context.Context) *RankError {
	cause := context.Cause(ctx)
	if !errors.Is(cause, ErrLate) && !errors.Is(cause, context.DeadlineExceeded) {
		return &RankError{Rank: e.rank, Phase: "cancelled", Err: cause}
	}
	culprit := e.rank
	if r, _ := e.waits.expecting(); r >= 0 {
		culprit = r
	}
	// Only calls of all ranks of the View can be compared by their number.
	if seq, ofAll := e.active.call(); ofAll && e.can.Behind != nil {
		if r, ok := e.can.Behind(seq); ok {
			culprit = r
		}
	}
	return &RankError{Rank: culprit, Phase: "not called", Err: lateness(cause)}
}

// Abort is part of Engine.
func (e *HostEngine) Abort(cause *RankError) {
	e.t.Abort(cause)
	var before *RankError // if the transport was broken already, this caller is not the culprit
	if e.can.Err != nil && errors.As(e.can.Err(), &before) {
		cause = before
	}
	e.aborted.CompareAndSwap(nil, cause)
}

// Close is part of Engine.
func (e *HostEngine) Close() error {
	err := e.t.Close() // ends calls in progress
	e.closed.Do(func() {
		e.active.end()
		e.messaging.Lock()
		e.contextWatch.end()
		e.out.close()
		if e.can.Free != nil && !e.divided { // a Sub may still use the memory
			e.can.Free()
		}
	})
	return err
}
