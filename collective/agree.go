package collective

import "context"

// Agree compares a call on all ranks without carrying it out. It is a barrier
// whose messages carry the call, so it returns when every rank has called it.
// If two ranks differ, they get a *MismatchError. The end of ctx breaks the
// engine while Agree is in progress. The rules for calling Wait apply to Agree.
func (e *HostEngine) Agree(ctx context.Context, h Header) error {
	o := &Operation{Header: h}
	e.fillHeader(o)
	e.started, e.agrees = append(e.started, o), true
	return e.Wait(ctx)
}

// Failed returns a channel that is closed when the engine breaks, for whatever
// reason. It is nil if the engine finds out only during its calls. Failed and
// Err are safe for concurrent use.
func (e *HostEngine) Failed() <-chan struct{} { return e.can.Failed }

// Err returns nil while Failed is open, and then what broke the engine: a
// *RankError that names the culprit, or ErrClosed.
func (e *HostEngine) Err() error {
	if cause := e.aborted.Load(); cause != nil {
		return cause
	}
	if e.can.Err != nil {
		return e.can.Err()
	}
	return nil
}
