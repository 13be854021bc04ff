package collective

import "context"

// Agree returns when every rank has called it with the same call, which it does
// not carry out: it is a barrier whose messages carry the call. Ranks that differ
// get a *MismatchError. The end of ctx breaks the engine, until Agree returns. Call
// it as you would call Wait.
func (e *HostEngine) Agree(ctx context.Context, h Header) error {
	o := &Operation{Header: h}
	e.own(o)
	e.started, e.agrees = append(e.started, o), true
	return e.Wait(ctx)
}

// Failed is closed when the engine is broken, whatever broke it. It is nil if the
// engine learns of that only in its calls. Any goroutine may call Failed and Err.
func (e *HostEngine) Failed() <-chan struct{} { return e.can.Failed }

// Err returns what broke the engine, as a *RankError that names the culprit, or
// ErrClosed; nil while Failed is open.
func (e *HostEngine) Err() error {
	if cause := e.aborted.Load(); cause != nil {
		return cause
	}
	if e.can.Err != nil {
		return e.can.Err()
	}
	return nil
}
