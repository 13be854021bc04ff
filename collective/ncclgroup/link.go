package ncclgroup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nccl"
)

// How long things take at most when something has failed.
const (
	lookEvery = 20 * time.Millisecond // between looks at the communicator's state
	nameTime  = time.Second           // for the engine below to find out who died, once NCCL has failed
	abortTime = time.Second           // for an abort, before the call returns
	drainTime = 500 * time.Millisecond
	closeTime = 2 * time.Second // for other ranks to close, too, and then for the communicator's end
)

var (
	// errBroken ends a call that finds the communicator aborted.
	errBroken = errors.New("the communicator was aborted")
	// errAborts says that a thread is lost.
	errAborts = errors.New("ncclgroup: the communicator does not end (a graph that holds it may not have been destroyed): the thread that ends it and the device's memory stay in use until the process does")
)

// A handle holds a communicator that one goroutine at a time uses.
type handle struct {
	mu sync.Mutex
	c  communicator // nil before it is there, and when it is gone
}

// fill puts in the communicator that connect returns. Nobody uses the handle
// meanwhile.
func (h *handle) fill(connect func() (communicator, error)) (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.c, err = connect()
	return err
}

func (h *handle) do(fn func(c communicator) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c == nil {
		return errBroken
	}
	return fn(h.c)
}

func (h *handle) there() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.c != nil
}

// take takes the communicator out, so that nobody else uses it or waits for
// whoever ends it. It returns nil if there is none.
func (h *handle) take() communicator {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.c
	h.c = nil
	return c
}

// A link is this rank's communicator, from its beginning to its end. It looks for
// failures meanwhile. It has no communicator if the ranks do not use NCCL.
type link struct {
	seat     seat
	base     *collective.HostEngine // reports the failures of ranks
	gpu      hardware
	breaking func()      // Config.Breaking
	closing  atomic.Bool // Close was called: that base fails is no failure

	handle  handle
	broken  chan struct{} // closed after cause was set
	cause   error
	aborted chan struct{} // closed when nothing of the communicator is left
	quit    chan struct{} // closed by disconnect

	mu    sync.Mutex // guards what follows, and the beginning of tasks
	ended bool
	tasks sync.WaitGroup
}

func newLink(s seat, base *collective.HostEngine, g hardware, breaking func()) *link {
	return &link{
		seat: s, base: base, gpu: g, breaking: breaking,
		broken: make(chan struct{}), aborted: make(chan struct{}), quit: make(chan struct{}),
	}
}

// over reports whether the link is broken.
func (l *link) over() bool {
	select {
	case <-l.broken:
		return true
	default:
		return false
	}
}

// join makes the communicator, together with all ranks.
func (l *link) join(ctx context.Context, id nccl.UniqueID) error {
	err := l.gpu.aside(ctx, func() error {
		return l.handle.fill(func() (communicator, error) { return l.gpu.join(l.seat.size, id, l.seat.rank) })
	})
	if err != nil {
		return err
	}
	if err := l.until(ctx, pauseNet, l.idle); err != nil {
		return err
	}
	l.guard()
	return nil
}

// idle reports whether the communicator is done with the last call.
func (l *link) idle() (bool, error) {
	err := l.handle.do(communicator.AsyncError)
	if errors.Is(err, nccl.ErrInProgress) {
		return false, nil
	}
	return true, err
}

// until is poll for calls. After errBroken the link is broken.
func (l *link) until(ctx context.Context, pause time.Duration, done func() (bool, error)) error {
	err := poll(ctx, pause, done, l.broken, l.base.Failed())
	if err == nil && l.over() { // what is aborted is soon done, too
		err = errBroken
	}
	if errors.Is(err, errBroken) {
		l.breakUp(l.base.Err())
	}
	return err
}

// guard begins to look for failures, as long as the communicator is there: those
// that the engine below hears of, and those that NCCL knows.
func (l *link) guard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.tasks.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-l.quit:
				return
			case <-l.broken:
				return
			case <-l.base.Failed():
				if !l.closing.Load() {
					l.breakUp(l.base.Err())
				}
				return
			case <-tick.C:
				err := l.handle.do(communicator.AsyncError)
				if err != nil && !errors.Is(err, nccl.ErrInProgress) && !errors.Is(err, errBroken) {
					l.report(err)
					return
				}
			}
		}
	})
}

// report breaks the link because of a failure of NCCL or the device. That may be
// how a peer's death shows here first, so whoever can name the peer gets a moment
// to do so. Otherwise this rank has failed, and report tells the others.
func (l *link) report(err error) {
	patience := time.NewTimer(nameTime)
	defer patience.Stop()
	select {
	case <-l.base.Failed():
	case <-l.broken:
	case <-l.quit:
	case <-patience.C:
		l.base.Abort(l.seat.failed(err))
	}
	l.breakUp(err)
}

// breakUp aborts the communicator, in the background. The first cause counts.
func (l *link) breakUp(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over() {
		return
	}
	if cause == nil {
		cause = errBroken
	}
	if l.breaking != nil {
		l.breaking()
	}
	l.cause = cause
	close(l.broken)
	if l.ended { // disconnect does it
		return
	}
	l.tasks.Go(func() {
		defer close(l.aborted)
		_ = l.endBy(communicator.Abort) // the cause says more
	})
}

// endBy ends the communicator, on a thread that nobody else needs: NCCL keeps it
// until the graphs that hold the communicator are gone.
func (l *link) endBy(fn func(communicator) error) error {
	c := l.handle.take()
	if c == nil {
		return nil
	}
	return l.gpu.apart(func() error { return fn(c) })
}

// disconnect ends the communicator: with the other ranks, if they close within
// closeTime, or else alone. No call is in progress. After errAborts a thread is
// still in NCCL.
func (l *link) disconnect() error {
	l.mu.Lock()
	l.ended = true
	close(l.quit)
	l.mu.Unlock()
	err := within(closeTime, func() error { l.tasks.Wait(); return nil })
	if err != nil || !l.handle.there() {
		return err
	}
	return within(2*closeTime, func() error {
		if err := l.finalize(); err != nil { // the others have not closed, or are gone
			return l.endBy(communicator.Abort)
		}
		if err := l.endBy(communicator.Destroy); err != nil {
			return fmt.Errorf("closing: %w", err)
		}
		return nil
	})
}

// finalize lets the ranks end the communicator together.
func (l *link) finalize() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return l.gpu.aside(ctx, func() error {
		if err := l.handle.do(communicator.Finalize); err != nil {
			return err
		}
		return poll(ctx, pauseNet, l.idle, l.broken, nil)
	})
}
