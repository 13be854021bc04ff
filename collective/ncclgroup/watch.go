package ncclgroup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// How long things take at most when something has failed.
const (
	lookEvery = 20 * time.Millisecond // at the communicator's state
	nameTime  = time.Second           // for the engine below to find out who died, once NCCL has failed
	abortTime = time.Second           // for an abort, before the call returns
	drainTime = 500 * time.Millisecond
	closeTime = 2 * time.Second // for other ranks to close, too, and then for the communicator's end
)

var (
	// errBroken is why a call ends that finds the communicator aborted.
	errBroken = errors.New("the communicator was aborted")
	// errAborts says that a thread is lost.
	errAborts = errors.New("ncclgroup: the communicator does not end (a graph that holds it may not have been destroyed): the thread that ends it and the device's memory stay in use until the process does")
)

// A link is a communicator that one goroutine at a time is in.
type link struct {
	mu sync.Mutex
	c  communicator // nil before it is there, and when it is gone
}

func (l *link) do(fn func(c communicator) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c == nil {
		return errBroken
	}
	return fn(l.c)
}

func (l *link) there() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.c != nil
}

// take takes the communicator out, so that nobody else is in it, nor waits for who
// ends it. It is nil if it was not there.
func (l *link) take() communicator {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.c
	l.c = nil
	return c
}

// A watch is what is known of a communicator's end, and who looks for it.
type watch struct {
	broken  chan struct{} // closed after cause was set
	cause   error
	aborted chan struct{} // closed when nothing of the communicator is left
	quit    chan struct{} // closed by Close

	mu    sync.Mutex // guards what follows, and the beginning of tasks
	ended bool
	tasks sync.WaitGroup
}

func newWatch() watch {
	return watch{broken: make(chan struct{}), aborted: make(chan struct{}), quit: make(chan struct{})}
}

func (w *watch) over() bool {
	select {
	case <-w.broken:
		return true
	default:
		return false
	}
}

// breakUp aborts the communicator, in the background; the first cause counts.
func (e *Engine) breakUp(cause error) {
	w := &e.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over() {
		return
	}
	if cause == nil {
		cause = errBroken
	}
	if e.config.Breaking != nil {
		e.config.Breaking()
	}
	w.cause = cause
	close(w.broken)
	if w.ended { // Close does it
		return
	}
	w.tasks.Go(func() {
		defer close(w.aborted)
		_ = e.endBy(communicator.Abort) // the cause says more
	})
}

// endBy ends the communicator, on a thread that nobody else needs: NCCL keeps it
// until the graphs that hold the communicator are gone.
func (e *Engine) endBy(fn func(communicator) error) error {
	c := e.link.take()
	if c == nil {
		return nil
	}
	return e.gpu.apart(func() error { return fn(c) })
}

// guard begins to look for failures, as long as the communicator is there: those
// that the engine below hears of, and those that NCCL knows.
func (e *Engine) guard() {
	w := &e.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.tasks.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-w.quit:
				return
			case <-w.broken:
				return
			case <-e.base.Failed():
				if !e.closing.Load() {
					e.breakUp(e.base.Err())
				}
				return
			case <-tick.C:
				err := e.link.do(communicator.AsyncError)
				if err != nil && !errors.Is(err, nccl.ErrInProgress) && !errors.Is(err, errBroken) {
					e.report(err)
					return
				}
			}
		}
	})
}

// report breaks the engine because of a failure of NCCL or the device. That may
// be how a peer's death shows here first, so whoever can name the peer gets a
// moment to do so; otherwise it is this rank that failed, and the others hear so.
func (e *Engine) report(err error) {
	patience := time.NewTimer(nameTime)
	defer patience.Stop()
	select {
	case <-e.base.Failed():
	case <-e.watch.broken:
	case <-e.watch.quit:
	case <-patience.C:
		e.base.Abort(e.mine(err))
	}
	e.breakUp(err)
}

// mine says that this rank failed.
func (e *Engine) mine(err error) *collective.RankError {
	return &collective.RankError{Rank: e.seat.rank, Phase: "failed", Err: err}
}

// blame breaks the engine on all ranks because of what ended a call here, waits
// until the device has let go of the call's vectors, and returns who is to blame.
func (e *Engine) blame(ctx context.Context, err error) error {
	var known *collective.RankError
	var differ *collective.MismatchError
	var fromNCCL *nccl.Error
	var fromCUDA *cuda.Error
	switch {
	case e.closing.Load():
		e.breakUp(collective.ErrClosed)
		e.letGo()
		return collective.ErrClosed
	case errors.As(err, &known), errors.As(err, &differ): // the others know
		e.breakUp(err)
		e.letGo()
		return err
	case errors.Is(err, errBroken):
		e.breakUp(err) // it is
		err = e.watch.cause
	case ctx.Err() != nil:
		late := e.tooLate(ctx)
		e.base.Abort(late)
		e.breakUp(late)
		err = late
	case errors.As(err, &fromNCCL), errors.As(err, &fromCUDA):
		e.report(err)
	default:
		e.base.Abort(e.mine(err))
		e.breakUp(err)
	}
	e.letGo()
	switch cause := e.base.Err(); {
	case errors.As(cause, &known), errors.Is(cause, collective.ErrClosed):
		return cause
	case errors.As(err, &known):
		return err
	}
	return e.mine(err)
}

// tooLate says who is to blame for the end of ctx during a call that all ranks
// have made.
func (e *Engine) tooLate(ctx context.Context) *collective.RankError {
	cause := context.Cause(ctx)
	if errors.Is(cause, collective.ErrLate) || errors.Is(cause, context.DeadlineExceeded) {
		return e.mine(ErrStuck)
	}
	return &collective.RankError{Rank: e.seat.rank, Phase: "cancelled", Err: cause}
}

// letGo waits until the stream has gone on behind the call, if that has put
// anything there. What NCCL has not put there completely it does not put there any
// more once the communicator has been aborted; otherwise nobody waits for that,
// because it takes until the graphs that hold the communicator are gone. The waits
// have ends: a device that hangs must not keep the error back.
func (e *Engine) letGo() {
	switch e.use {
	case unused:
		return
	case unmarked:
		patience := time.NewTimer(abortTime)
		defer patience.Stop()
		select {
		case <-e.watch.aborted:
		case <-patience.C:
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	_ = e.gpu.aside(ctx, func() error { return poll(ctx, pauseDevice, e.gpu.passed, nil, nil) }) // a device that failed has also let go
}

// How long a poll pauses.
const (
	pauseDevice = 50 * time.Microsecond
	pauseNet    = time.Millisecond
	spinFor     = 50 * time.Microsecond // without a pause, at first
)

// poll asks done until it says so, fails, or one of the others ends it.
func poll(ctx context.Context, pause time.Duration, done func() (bool, error), broken, failed <-chan struct{}) error {
	begin := time.Now()
	var tick *time.Ticker
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if tick == nil && time.Since(begin) < spinFor {
			continue
		}
		if tick == nil {
			tick = time.NewTicker(pause)
			defer tick.Stop()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-broken:
			return errBroken
		case <-failed:
			return errBroken
		}
	}
}

// until is poll for the calls of an engine. After errBroken the engine is broken.
func (e *Engine) until(ctx context.Context, pause time.Duration, done func() (bool, error)) error {
	err := poll(ctx, pause, done, e.watch.broken, e.base.Failed())
	if err == nil && e.watch.over() { // what is aborted is soon done, too
		err = errBroken
	}
	if errors.Is(err, errBroken) {
		e.breakUp(e.base.Err())
	}
	return err
}

// disconnect ends the communicator: with the other ranks, if they close within
// closeTime, or else alone. No call is in progress. After errAborts a thread is
// still in NCCL.
func (e *Engine) disconnect() error {
	w := &e.watch
	w.mu.Lock()
	w.ended = true
	close(w.quit)
	w.mu.Unlock()
	err := within(closeTime, func() error { w.tasks.Wait(); return nil })
	if err != nil || !e.link.there() {
		return err
	}
	return within(2*closeTime, func() error {
		if err := e.finalize(); err != nil { // the others have not closed, or are gone
			return e.endBy(communicator.Abort)
		}
		if err := e.endBy(communicator.Destroy); err != nil {
			return fmt.Errorf("closing: %w", err)
		}
		return nil
	})
}

// within is fn's error, or errAborts if it has not returned in time. Then it goes
// on.
func within(limit time.Duration, fn func() error) error {
	patience := time.NewTimer(limit)
	defer patience.Stop()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-patience.C:
		return errAborts
	}
}

// finalize lets the ranks end the communicator together.
func (e *Engine) finalize() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return e.gpu.aside(ctx, func() error {
		if err := e.link.do(communicator.Finalize); err != nil {
			return err
		}
		return poll(ctx, pauseNet, e.idle, e.watch.broken, nil)
	})
}

// idle reports whether the communicator is done with the last call.
func (e *Engine) idle() (bool, error) {
	err := e.link.do(communicator.AsyncError)
	if errors.Is(err, nccl.ErrInProgress) {
		return false, nil
	}
	return true, err
}
