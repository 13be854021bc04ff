package ncclgroup

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// A lane is the stream of an Engine and what the call in progress has queued on it. Its
// user holds Engine.busy.
type lane struct {
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

// put runs fn, which puts work on the stream, and marks its end. The stream must
// not be captured, because the caller then waits.
func (l *lane) put(ctx context.Context, fn func() error) error {
	return l.gpu.on(ctx, func() error {
		if err := l.uncaptured(); err != nil {
			return err
		}
		l.use = unmarked
		if err := fn(); err != nil {
			return err
		}
		if err := l.gpu.mark(); err != nil {
			return err
		}
		l.use = marked
		return nil
	})
}

// uncaptured returns an error if the stream is being captured.
func (l *lane) uncaptured() error {
	capturing, err := l.gpu.capturing(l.stream)
	if err == nil && capturing {
		err = fmt.Errorf("ncclgroup: a Group's call in a capture: %w: Engine.Queue can be captured", collective.ErrUnsupported)
	}
	return err
}

// queue hands commands to NCCL and waits until it has queued them, which is when
// the ranks have connected as the commands need. It runs on the thread of
// hardware.on.
func (l *lane) queue(ctx context.Context, s cuda.Stream, commands []nccl.Command) error {
	l.use = unmarked
	if err := l.link.handle.do(func(c communicator) error { return c.queue(s, commands) }); err != nil {
		return err
	}
	return l.link.until(ctx, pauseDevice, l.link.idle)
}

// queueUnmarked puts commands on s, which may be captured, and does not mark their end.
func (l *lane) queueUnmarked(ctx context.Context, s cuda.Stream, commands []nccl.Command) error {
	l.use = unused
	return l.gpu.on(ctx, func() error {
		capturing, err := l.gpu.capturing(s)
		if err == nil {
			err = l.queue(ctx, s, commands)
		}
		if capturing { // so nothing is in progress
			l.use = unused
		}
		return err
	})
}

// finish waits for the mark.
func (l *lane) finish(ctx context.Context) error {
	return l.gpu.aside(ctx, func() error { return l.link.until(ctx, pauseDevice, l.gpu.passed) })
}

// letGo waits until the device no longer uses the vectors of a call that failed. If
// NCCL had not put all of the call on the stream, letGo first waits for the abort,
// after which NCCL adds nothing. But the abort takes until all graphs that hold the
// communicator are gone, and a device may hang, so the waits are bounded: they must
// not keep the error back.
func (l *lane) letGo() {
	switch l.use {
	case unused:
		return
	case unmarked:
		patience := time.NewTimer(abortTime)
		defer patience.Stop()
		select {
		case <-l.link.aborted:
		case <-patience.C:
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	_ = l.gpu.aside(ctx, func() error { return poll(ctx, pauseDevice, l.gpu.passed, nil, nil) }) // a device that failed uses nothing any more
}
