package collective

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// OverTransport makes the engine of a View over a Transport, which belongs to it
// from now on.
func OverTransport(v View, t Transport) *HostEngine {
	e := &HostEngine{view: v, rank: v.Self, size: v.Size(), t: t, can: AbilitiesOf(t), heard: make([]uint64, v.Size()), waits: new(Waits), left: make(chan struct{}, 1)}
	e.situation = arrange(v, e.can.Reduce != nil)
	e.out = newOutbox(t, e.can.Post)
	return e
}

// ByMethod is OverTransport for tests and measurements: every AllReduce goes by
// one method, whatever its size, wherever the method can do it.
func ByMethod(v View, t Transport, m schedule.Method) *HostEngine {
	e := OverTransport(v, t)
	e.situation.Force = m
	return e
}

// A HostEngine is the Engine for host memory: it carries out the schedules of
// package schedule over a Transport, one call at a time, in the goroutine that
// waits for it. An engine for memory that it does not reach, as that of a GPU, is
// built on it.
type HostEngine struct {
	view       View
	group      uint32 // in headers: which group of the View
	parent     *HostEngine
	rank, size int
	t          Transport
	can        Abilities // of t
	out        outbox
	situation  schedule.Situation // what plans depend on

	started  []*Operation // that Start was given and Wait has not yet done
	agrees   bool         // all that is to be done with it, see Agree
	shown    *Operation   // the one of them that show has shown
	scratch  []uint64     // operands that arrive; aligned for every element type
	chain    Chain
	moves    []schedule.Move
	parts    []traffic // of a call that makes moves, by rank
	operands [][]byte  // of what is being folded
	want     Header    // of the message that is being received
	in       [][]byte  // parts of the message that is being received
	whole    [1][]byte // the same for a message that arrives in scratch

	waits   *Waits                    // of the Group
	itself  bool                      // t notes the waits of Recv
	calls   uint64                    // performed
	heard   []uint64                  // the last call in which a rank was heard of, by rank
	aborted atomic.Pointer[RankError] // by Abort; a group of one has no peer to hear it from

	ctx     context.Context // that is watched, nil before the first
	ended   <-chan struct{} // of it
	unwatch func() bool

	call    atomic.Uint64 // that in progress, see inCall; 0 when there is none
	closing atomic.Bool
	divided bool          // there are Subs
	left    chan struct{} // takes a value when a call is over and closing is set
	closed  sync.Once
}

// Bits of HostEngine.call, beside the number of the call.
const (
	inCall   = 1 << iota
	ofAll    // all ranks of the View make it, so that calls can be compared
	callBits = iota
)

var _ Engine = (*HostEngine)(nil)

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

// show shows a call to the others as early as can be, if all of it is the
// transport's.
func (e *HostEngine) show(o *Operation) error {
	switch k := o.Call.Kind; {
	case k == KindBarrier && e.reducer() != nil:
	case k == KindAllReduce && o.Dst.same(&o.Src) && e.situation.AlwaysShared():
	default:
		return nil
	}
	// The first call waits for its context; one that is going to fail is not shown,
	// so that the others' fails too.
	if e.ctx == nil || e.ctx.Err() != nil || e.aborted.Load() != nil {
		return nil
	}
	o.share()
	e.enter(&o.Header)
	if e.closing.Load() {
		e.leave()
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
	o, err := e.shown, ErrClosed
	if o == nil {
		e.enter(&e.started[len(e.started)-1].Header)
	}
	switch {
	case o != nil: // even if e was closed or aborted meanwhile, see Abilities.Show
		if ctx != e.ctx {
			e.mind(ctx)
		}
		err = e.complete(o)
	case e.closing.Load():
	default:
		err = e.attend(ctx)
	}
	e.started, e.agrees, e.shown = e.started[:0], false, nil
	e.leave()
	return err
}

// complete does what is left of a call that was shown.
func (e *HostEngine) complete(o *Operation) (err error) {
	if o.Call.Kind == KindBarrier {
		err = e.can.Reduce.Barrier(o)
	} else {
		err = e.can.Reduce.AllReduce(o)
	}
	if err != nil {
		e.blame(err)
	}
	return err
}

// enter and leave let Close wait for calls: either it sees the call, or the
// call sees that it is closing.
func (e *HostEngine) enter(h *Header) {
	call := h.Seq<<callBits | inCall
	if h.OfAll() {
		call |= ofAll
	}
	e.call.Store(call)
}

func (e *HostEngine) leave() {
	e.call.Store(0)
	if e.closing.Load() {
		select {
		case e.left <- struct{}{}:
		default:
		}
	}
}

// attend runs the calls that were started. When ctx ends it breaks the
// transport, which ends the calls; so the calls below take no context.
func (e *HostEngine) attend(ctx context.Context) error {
	e.mind(ctx)
	if ctx.Err() != nil {
		e.Abort(e.tooLate(ctx))
	}
	for p := e; p != nil; p = p.parent {
		if cause := p.aborted.Load(); cause != nil {
			return cause
		}
	}
	err := e.performAll()
	e.waits.nothing()
	if err != nil {
		e.blame(err)
	}
	if sendErr := e.out.flush(); err == nil {
		err = sendErr
	}
	if e.agrees { // what comes between this call and the next is not this engine's
		e.ignore()
	}
	return err
}

// mind has the end of ctx break the transport. A group gives the same context
// again and again, and ends it during a call or when no other follows, so it is
// watched on.
func (e *HostEngine) mind(ctx context.Context) {
	if ctx.Done() == e.ended {
		return
	}
	if e.unwatch != nil {
		e.unwatch()
	}
	e.ctx, e.ended = ctx, ctx.Done()
	e.unwatch = context.AfterFunc(ctx, func() { e.t.Abort(e.tooLate(ctx)) })
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

// tooLate says who is to blame for the end of ctx: the caller who cancelled,
// or, when time ran out, who has not called.
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
	if call := e.call.Load(); e.can.Behind != nil && call&ofAll != 0 {
		if r, ok := e.can.Behind(call >> callBits); ok {
			culprit = r
		}
	}
	return &RankError{Rank: culprit, Phase: "not called", Err: ErrLate}
}

// performAll runs the calls one after another, but for the two halves of a
// SendRecv, which would wait for each other.
func (e *HostEngine) performAll() error {
	e.calls++
	if s := e.started; len(s) == 2 && s[0].Call.Kind == KindSend && s[1].Call.Kind == KindSend {
		return e.exchange(s[0], s[1])
	}
	for _, o := range e.started {
		if err := e.perform(o); err != nil {
			return err
		}
	}
	return nil
}

func (e *HostEngine) perform(o *Operation) error {
	if e.agrees {
		return e.barrier(o)
	}
	switch h := &o.Header; h.Call.Kind {
	case KindAllReduce:
		return e.allReduce(o)
	case KindBroadcast:
		return e.broadcast(h, o.Dst)
	case KindAllGather:
		return e.allGather(o)
	case KindBarrier:
		return e.barrier(o)
	case KindReduceScatter:
		return e.reduceScatter(h, o.Dst, o.Src, o.Counts)
	case KindReduce:
		return e.reduce(h, o.Dst, o.Src)
	case KindGather:
		return e.gather(h, o.Dst, o.Src)
	case KindScatter:
		return e.scatter(h, o.Dst, o.Src)
	case KindAllToAll:
		return e.allToAll(h, o.Dst, o.Src, o.Counts)
	case KindSend:
		if int(h.Call.Root) == e.rank {
			return e.exchange(o, nil)
		}
		return e.exchange(nil, o)
	}
	return fmt.Errorf("collective: %v: %w", o.Call.Kind, ErrUnsupported)
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
		e.closing.Store(true)
		for e.call.Load() != 0 {
			<-e.left
		}
		if e.unwatch != nil {
			e.unwatch()
		}
		e.out.close()
		if e.can.Free != nil && !e.divided { // a Sub still has the memory
			e.can.Free()
		}
	})
	return err
}

// post sends bytes to a rank in the background.
func (e *HostEngine) post(h *Header, to int, part int, parts ...[]byte) {
	m := e.out.take()
	m.to, m.h = to, *h
	m.parts = append(m.parts[:0], parts...)
	e.seal(m, part)
}

// seal completes the header of an outgoing message and hands it over.
func (e *HostEngine) seal(m *outgoing, part int) {
	m.h.Part, m.h.Len = uint32(part), uint32(sum(m.parts))
	e.out.put(m)
}

// expecting is the header of the messages that a call receives: that of those
// it sends, which counts its parts apart.
func (e *HostEngine) expecting(h *Header) *Header {
	e.want = *h
	return &e.want
}

// receive fills parts from a rank's next message.
func (e *HostEngine) receive(h *Header, from int, part int, parts [][]byte) error {
	cause := SlowToMove
	if e.heard[from] != e.calls {
		e.heard[from] = e.calls
		if part == 0 || h.Call.Kind != KindBarrier { // in later rounds a rank waits for others first
			cause = LateToCall
		}
	}
	e.waits.expect(from, cause)
	h.Part, h.Len = uint32(part), uint32(sum(parts))
	if e.itself {
		return e.t.Recv(context.Background(), from, h, parts)
	}
	began := e.waits.Begin(from, AsExpected)
	err := e.t.Recv(context.Background(), from, h, parts)
	e.waits.End(from, AsExpected, began)
	return err
}

// record has the waits of calls noted in w.
func (e *HostEngine) record(w *Waits) {
	e.waits = w
	if e.can.Tell != nil {
		e.itself = e.can.Tell(w)
	}
	e.out.tell(w)
}

// room is n bytes of scratch memory, kept from call to call.
func (e *HostEngine) room(n int) []byte {
	if words := (n + 7) / 8; words > len(e.scratch) {
		e.scratch = make([]uint64, words)
	}
	return bytesOf(e.scratch)[:n]
}

func sum(parts [][]byte) int {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	return n
}
