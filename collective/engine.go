package collective

import "context"

// An Engine carries out the calls of a Group: by schedules over a Transport, or
// by NCCL on a stream. A Group calls it from one goroutine at a time.
type Engine interface {
	// Reaches reports whether the engine can use the memory of v in place.
	Reaches(v Vector) bool
	// Start begins a call. The Operation, its memory and its counts belong to
	// the engine until Wait returns. The engine may defer all work until Wait.
	Start(o *Operation) error
	// Wait finishes the calls that were started. The end of ctx breaks the
	// engine, even after Wait has returned, until Wait gets another context.
	// The error is a *RankError if the engine knows the culprit.
	Wait(ctx context.Context) error
	// Abort breaks the engine on every rank and reports the culprit to them.
	Abort(cause *RankError)
	// Sub returns an engine for some ranks of this one, in the order given.
	// This rank must be one of them. id separates its messages from those of
	// other engines and is the same on all its ranks. The two engines share
	// connections: only one may work at a time, and a failure of one breaks
	// both. Close the Sub before its parent.
	Sub(id uint32, v View, ranks []int) (Engine, error)
	// Order sets the order in which reductions may be folded, including those
	// that the engine delegates to its Host. A Group calls it once, before any
	// other call.
	Order(o Order)
	// Host returns the engine that works in host memory: this one, or the one
	// that it is built on. It may be nil; the Group then has no plans and notes
	// no waits.
	Host() *HostEngine
	// Close ends the engine; calls in progress return ErrClosed.
	Close() error
}
