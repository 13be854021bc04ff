package collective

import "context"

// A Base is an Engine on which another can be built, for memory that it does not
// reach itself, as that of a GPU. [OverTransport] makes one.
type Base interface {
	Engine
	// Agree returns when every rank has called it with the same call, which it
	// does not carry out. Ranks that differ get a *MismatchError; the end of ctx
	// breaks the engine, until Agree returns. It is called as Wait is.
	Agree(ctx context.Context, h Header) error
	// Failed is closed when the engine is broken, by whatever, and then Err says
	// who is to blame, as a *RankError, or ErrClosed. It is nil if the engine
	// learns of that only in its calls. Both may be called from any goroutine.
	Failed() <-chan struct{}
	Err() error
}

// A Based is an Engine over a Base, which does all that the other leaves to it.
// The Base belongs to it.
type Based interface {
	Engine
	// Base is the engine below.
	Base() Engine
	// Order says in which order reductions may be folded. NewGroup calls it.
	Order(o Order)
}

// Agree is part of Base: a barrier whose messages carry the call.
func (e *hostEngine) Agree(ctx context.Context, h Header) error {
	o := &Operation{Header: h}
	e.own(o)
	e.started, e.agrees = append(e.started, o), true
	return e.Wait(ctx)
}

// ignore undoes mind.
func (e *hostEngine) ignore() {
	if e.unwatch != nil {
		e.unwatch()
	}
	e.unwatch, e.ctx, e.ended = nil, nil, nil
}

// Failed is part of Base.
func (e *hostEngine) Failed() <-chan struct{} { return e.can.Failed }

// Err is part of Base.
func (e *hostEngine) Err() error {
	if cause := e.aborted.Load(); cause != nil {
		return cause
	}
	if e.can.Err != nil {
		return e.can.Err()
	}
	return nil
}
