package ncclgroup

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// A deviceQueue is the stream of an Engine and what the call in progress has queued on
// it. Its user holds Engine.busy.
type deviceQueue struct {
	gpu    hardware
	stream cuda.Stream
	link   *link
	use    use
}

// A use says what a call has queued on the stream.
type use uint8

const (
	unused   use = iota
	unmarked     // part of the call, or all of it without a mark
	marked       // all of it, and a mark
)

// run runs fn, which puts work on the stream, and marks its end. The stream must
// not be captured, because the caller then waits.
func (q *deviceQueue) run(ctx context.Context, fn func() error) error {
	return q.gpu.on(ctx, func() error {
		if err := q.uncaptured(); err != nil {
			return err
		}
		q.use = unmarked
		if err := fn(); err != nil {
			return err
		}
		if err := q.gpu.mark(); err != nil {
			return err
		}
		q.use = marked
		return nil
	})
}

// uncaptured returns an error if the stream is being captured.
func (q *deviceQueue) uncaptured() error {
	capturing, err := q.gpu.capturing(q.stream)
	if err == nil && capturing {
		err = fmt.Errorf("ncclgroup: a Group's call in a capture: %w: Engine.Queue can be captured", collective.ErrUnsupported)
	}
	return err
}

// submit hands commands to NCCL and waits until it has queued them, which is when
// the ranks have connected as the commands need. It runs on the thread of
// hardware.on.
func (q *deviceQueue) submit(ctx context.Context, s cuda.Stream, commands []nccl.Command) error {
	q.use = unmarked
	if err := q.link.handle.do(func(c communicator) error { return c.queue(s, commands) }); err != nil {
		return err
	}
	return q.link.until(ctx, pauseDevice, q.link.idle)
}

// submitUnmarked puts commands on s, which may be captured, and does not mark their end.
func (q *deviceQueue) submitUnmarked(ctx context.Context, s cuda.Stream, commands []nccl.Command) error {
	q.use = unused
	return q.gpu.on(ctx, func() error {
		capturing, err := q.gpu.capturing(s)
		if err == nil {
			err = q.submit(ctx, s, commands)
		}
		if capturing { // so nothing is in progress
			q.use = unused
		}
		return err
	})
}

// finish waits for the mark.
func (q *deviceQueue) finish(ctx context.Context) error {
	return q.gpu.aside(ctx, func() error { return q.link.until(ctx, pauseDevice, q.gpu.passed) })
}

// drain waits until the device no longer uses the vectors of a call that failed. If
// NCCL had not put all of the call on the stream, drain first waits for the abort,
// after which NCCL adds nothing. But the abort takes until all graphs that hold the
// communicator are gone, and a device may hang, so the waits are bounded: they must
// not keep the error back.
func (q *deviceQueue) drain() {
	switch q.use {
	case unused:
		return
	case unmarked:
		patience := time.NewTimer(abortTime)
		defer patience.Stop()
		select {
		case <-q.link.aborted:
		case <-patience.C:
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	_ = q.gpu.aside(ctx, func() error { return poll(ctx, pauseDevice, q.gpu.passed, nil, nil) }) // a device that failed uses nothing any more
}
