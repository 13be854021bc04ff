package collective

import "context"

// An Engine does the work of a Group: schedules over a Transport, or NCCL on a
// stream. A Group calls it from one goroutine at a time.
type Engine interface {
	// Reaches reports whether the engine can use the memory of v in place.
	Reaches(v Vector) bool
	// Start begins a call. The Operation, its memory and its counts belong to the
	// engine until Wait returns. Work may be put off until Wait.
	Start(o *Operation) error
	// Wait finishes the calls that were started. The end of ctx breaks the engine,
	// even if it comes after Wait has returned, until another context is given.
	// The error is a *RankError when it knows who is to blame.
	Wait(ctx context.Context) error
	// Abort breaks the engine on every rank and says who is to blame.
	Abort(cause *RankError)
	// Sub is an engine for some ranks of this one, in the order given, of which
	// this rank is one. id tells its messages from others' and is the same on all
	// of them. The two share connections: only one of them works at a time, and
	// the first to break breaks both. It is closed before this one.
	Sub(id uint32, v View, ranks []int) (Engine, error)
	// Order says in which order reductions may be folded, also those that this
	// engine leaves to its Host. A Group calls it once, before any other call.
	Order(o Order)
	// Host is the engine that works in host memory: this one, or the one below it.
	// Without one, which is nil, the Group has no plans and notes no waits.
	Host() *HostEngine
	// Close ends the engine; calls in progress return ErrClosed.
	Close() error
}
