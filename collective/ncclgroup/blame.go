package ncclgroup

import (
	"context"
	"errors"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// blame breaks the engine on all ranks because of the error that ended a call here, waits
// until the device no longer uses the call's vectors, and returns an error that names the
// culprit.
func (e *Engine) blame(ctx context.Context, err error) error {
	var known *collective.RankError
	var differ *collective.MismatchError
	var fromNCCL *nccl.Error
	var fromCUDA *cuda.Error
	switch {
	case e.link.closing.Load():
		e.link.breakUp(collective.ErrClosed)
		e.queue.drain()
		return collective.ErrClosed
	case errors.As(err, &known), errors.As(err, &differ): // the other ranks know
		e.link.breakUp(err)
		e.queue.drain()
		return err
	case errors.Is(err, errBroken):
		e.link.breakUp(err) // it is
		err = e.link.cause
	case ctx.Err() != nil:
		late := e.tooLate(ctx)
		e.base.Abort(late)
		e.link.breakUp(late)
		err = late
	case errors.As(err, &fromNCCL), errors.As(err, &fromCUDA):
		e.link.report(err)
	default:
		e.base.Abort(e.seat.failed(err))
		e.link.breakUp(err)
	}
	e.queue.drain()
	switch cause := e.base.Err(); {
	case errors.As(cause, &known), errors.Is(cause, collective.ErrClosed):
		return cause
	case errors.As(err, &known):
		return err
	}
	return e.seat.failed(err)
}

// tooLate names the culprit if ctx ended during a call that all ranks have made.
func (e *Engine) tooLate(ctx context.Context) *collective.RankError {
	cause := context.Cause(ctx)
	if errors.Is(cause, collective.ErrLate) || errors.Is(cause, context.DeadlineExceeded) {
		return e.seat.failed(ErrStuck)
	}
	return &collective.RankError{Rank: e.seat.rank, Phase: "cancelled", Err: cause}
}
