package collective

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// A HostEngine is the Engine for host memory: it carries out the schedules of
// package schedule over a Transport, one call at a time, in the goroutine that
// waits for it. Engines for other memory, as that of a GPU, are built on it.
type HostEngine struct {
	executor // of the calls; the engine says when they begin and end

	view    View
	group   uint32    // in headers: which group of the View
	can     Abilities // of the transport
	parent  *HostEngine
	divided bool // there are Subs

	started []*Operation // that Start was given and Wait has not yet done
	agrees  bool         // the ranks only compare it, see Agree
	shown   *Operation   // the one of them that show has shown

	aborted atomic.Pointer[RankError] // by Abort; a group of one has no peer to hear it from
	watched watched
	stay    stay
	closed  sync.Once
}

var _ Engine = (*HostEngine)(nil)

// OverTransport makes the engine of a View over a Transport, which belongs to it
// from now on.
func OverTransport(v View, t Transport) *HostEngine {
	can := AbilitiesOf(t)
	e := &HostEngine{view: v, can: can, stay: stay{left: make(chan struct{}, 1)}}
	e.mover = mover{wire: newWire(v, t, can), situation: arrange(v, can.Reduce != nil), reduces: can.Reduce}
	return e
}

// ByMethod is OverTransport for tests and measurements: every AllReduce goes by
// one method, whatever its size, wherever the method can do it.
func ByMethod(v View, t Transport, m schedule.Method) *HostEngine {
	e := OverTransport(v, t)
	e.situation.Force = m
	return e
}

// Host is part of Engine.
func (e *HostEngine) Host() *HostEngine { return e }

// Order is part of Engine.
func (e *HostEngine) Order(o Order) { e.situation.Any = o == AnyOrder }

// Reaches is part of Engine: all host memory.
func (e *HostEngine) Reaches(v Vector) bool { _, ok := v.Host(); return ok }

// own completes an operation's header.
func (e *HostEngine) own(o *Operation) {
	o.Job, o.Epoch, o.Group = e.view.Job, e.view.Epoch, e.group
}

// Start is part of Engine.
func (e *HostEngine) Start(o *Operation) error {
	e.own(o)
	e.started = append(e.started, o)
	if e.can.Show != nil {
		return e.show(o)
	}
	return nil
}

// show shows a call to the other ranks as early as possible, if the transport
// carries out all of it.
func (e *HostEngine) show(o *Operation) error {
	switch k := o.Call.Kind; {
	case k == KindBarrier && e.reducer() != nil:
	case k == KindAllReduce && o.Dst.same(&o.Src) && e.situation.AlwaysShared():
	default:
		return nil
	}
	// The first call waits for its context. A call that is going to fail is not
	// shown, so that it fails on the other ranks, too.
	if e.watched.ctx == nil || e.watched.ctx.Err() != nil || e.aborted.Load() != nil {
		return nil
	}
	o.share()
	e.stay.enter(&o.Header)
	if e.stay.closing.Load() {
		e.stay.leave()
		e.started = e.started[:0]
		return ErrClosed
	}
	e.can.Show(o)
	e.shown = o
	return nil
}

// Wait is part of Engine.
func (e *HostEngine) Wait(ctx context.Context) error {
	if len(e.started) == 0 {
		return nil
	}
	err := e.admit(ctx)
	if err == nil {
		err = e.end(e.performAll())
	}
	e.started, e.agrees, e.shown = e.started[:0], false, nil
	e.stay.leave()
	return err
}

// admit lets the calls begin, or returns why they cannot. The end of ctx breaks
// the transport, and that ends the calls, so the code below takes no context. A
// call that was shown begins even if the engine was closed or aborted meanwhile,
// see Abilities.Show.
func (e *HostEngine) admit(ctx context.Context) error {
	if e.shown != nil {
		e.mind(ctx)
		return nil
	}
	e.stay.enter(&e.started[len(e.started)-1].Header)
	if e.stay.closing.Load() {
		return ErrClosed
	}
	e.mind(ctx)
	if ctx.Err() != nil {
		e.Abort(e.tooLate(ctx))
	}
	for p := e; p != nil; p = p.parent {
		if cause := p.aborted.Load(); cause != nil {
			return cause
		}
	}
	return nil
}

// performAll runs the calls one after another, except the two halves of a
// SendRecv, which would wait for each other.
func (e *HostEngine) performAll() error {
	if e.shown != nil {
		return e.shared(e.shown)
	}
	e.calls++
	if s := e.started; len(s) == 2 && s[0].Call.Kind == KindSend && s[1].Call.Kind == KindSend {
		return e.exchange(s[0], s[1])
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

// end ends the calls that were carried out with err.
func (e *HostEngine) end(err error) error {
	e.waits.nothing()
	if err != nil {
		e.blame(err)
	}
	if sendErr := e.flush(); err == nil {
		err = sendErr
	}
	if e.agrees { // what comes between this call and the next is not this engine's
		e.watched.forget()
	}
	return err
}

// blame tells the other ranks of a failure that the transport does not know
// of yet.
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

// mind has the end of ctx break the transport.
func (e *HostEngine) mind(ctx context.Context) {
	if ctx.Done() != e.watched.done {
		e.watched.follow(ctx, func() { e.t.Abort(e.tooLate(ctx)) })
	}
}

// tooLate says who is to blame for the end of ctx: the caller who cancelled,
// or, when time ran out, the rank that has not called.
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
	if seq, ofAll := e.stay.call(); ofAll && e.can.Behind != nil {
		if r, ok := e.can.Behind(seq); ok {
			culprit = r
		}
	}
	return &RankError{Rank: culprit, Phase: "not called", Err: ErrLate}
}

// Abort is part of Engine.
func (e *HostEngine) Abort(cause *RankError) {
	e.aborted.CompareAndSwap(nil, cause)
	e.t.Abort(cause)
}

// Close is part of Engine.
func (e *HostEngine) Close() error {
	err := e.t.Close() // ends calls in progress
	e.closed.Do(func() {
		e.stay.end()
		e.watched.forget()
		e.out.close()
		if e.can.Free != nil && !e.divided { // a Sub still has the memory
			e.can.Free()
		}
	})
	return err
}

// A stay is the time that a call spends in the engine. It lets Close wait for the
// call: either Close sees the call, or the call sees that the engine is closing.
type stay struct {
	now     atomic.Uint64 // the call in progress, see inCall; 0 when there is none
	closing atomic.Bool
	left    chan struct{} // takes a value when a call is over and closing is set
}

// Bits of stay.now, below the number of the call.
const (
	inCall   = 1 << iota
	ofAll    // all ranks of the View make it, so that calls can be compared
	callBits = iota
)

func (s *stay) enter(h *Header) {
	call := h.Seq<<callBits | inCall
	if h.OfAll() {
		call |= ofAll
	}
	s.now.Store(call)
}

func (s *stay) leave() {
	s.now.Store(0)
	if s.closing.Load() {
		select {
		case s.left <- struct{}{}:
		default:
		}
	}
}

// call is the number of the call in progress, if all ranks of the View make it.
func (s *stay) call() (seq uint64, all bool) {
	call := s.now.Load()
	return call >> callBits, call&ofAll != 0
}

// end waits for the call in progress, and refuses later ones.
func (s *stay) end() {
	s.closing.Store(true)
	for s.now.Load() != 0 {
		<-s.left
	}
}

// watched is the context whose end is watched. A group gives the same context
// again and again, and ends it during a call or when no other follows, so the
// watch outlasts a call.
type watched struct {
	ctx  context.Context // nil before the first
	done <-chan struct{} // of it
	stop func() bool
}

// follow has the end of ctx do something, instead of that of the context before.
func (w *watched) follow(ctx context.Context, do func()) {
	if w.stop != nil {
		w.stop()
	}
	w.ctx, w.done = ctx, ctx.Done()
	w.stop = context.AfterFunc(ctx, do)
}

// forget ends the watch.
func (w *watched) forget() {
	if w.stop != nil {
		w.stop()
	}
	w.stop, w.ctx, w.done = nil, nil, nil
}
