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

// Limits after a failure.
const (
	checkEvery = 20 * time.Millisecond // between checks of the communicator's state
	nameTime   = time.Second           // for the host engine to find the dead rank after NCCL has failed
	abortTime  = time.Second           // for an abort, before the call returns
	drainTime  = 500 * time.Millisecond
	closeTime  = 2 * time.Second // for other ranks to close, and again for the communicator to end
)

var (
	// errBroken ends a call that finds the communicator aborted.
	errBroken = errors.New("the communicator was aborted")
	// errAborts means that a thread is stuck in NCCL.
	errAborts = errors.New("ncclgroup: NCCL did not finish aborting the communicator (a graph that uses it may still exist): one thread and the device memory stay in use until the process exits")
)

// A handle holds a communicator that one goroutine at a time uses.
type handle struct {
	mu sync.Mutex
	c  communicator // nil before it is made and after it is removed
}

// fill stores the communicator that connect returns. Others wait until then.
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

// remove removes the communicator, so that nothing else uses it or waits for its end. It
// returns nil if there is none.
func (h *handle) remove() communicator {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.c
	h.c = nil
	return c
}

// A link owns this rank's communicator and watches it for failures. It has none if the
// ranks do not use NCCL.
type link struct {
	seat     seat
	base     *collective.HostEngine // reports failures of ranks
	gpu      hardware
	breaking func()      // Config.Breaking
	closing  atomic.Bool // Close was called: an error of base is no failure

	handle  handle
	broken  chan struct{} // closed after cause was set
	cause   error
	aborted chan struct{} // closed when the communicator is gone
	quit    chan struct{} // closed by disconnect

	mu    sync.Mutex // guards the fields below, and starting tasks
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

// join makes the communicator with all ranks.
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

// idle reports whether the communicator has finished the last call.
func (l *link) idle() (bool, error) {
	err := l.handle.do(communicator.AsyncError)
	if errors.Is(err, nccl.ErrInProgress) {
		return false, nil
	}
	return true, err
}

// until is poll for calls. It returns errBroken if the link breaks.
func (l *link) until(ctx context.Context, pause time.Duration, done func() (bool, error)) error {
	err := poll(ctx, pause, done, l.broken, l.base.Failed())
	if err == nil && l.over() { // an aborted call also finishes
		err = errBroken
	}
	if errors.Is(err, errBroken) {
		l.breakUp(l.base.Err())
	}
	return err
}

// guard starts the watch for failures that the host engine or NCCL reports. It ends with
// the communicator.
func (l *link) guard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.tasks.Go(func() {
		tick := time.NewTicker(checkEvery)
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

// report breaks the link because NCCL or the device failed. A peer's death may show here
// first, so the host engine gets nameTime to name the peer. If it names none, this rank has
// failed, and report informs the others.
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

// breakUp aborts the communicator in the background. Only the first cause counts.
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
	if l.ended { // disconnect ends it
		return
	}
	l.tasks.Go(func() {
		defer close(l.aborted)
		_ = l.endBy(communicator.Abort) // cause says more
	})
}

// endBy ends the communicator on a thread of its own, which NCCL keeps until the graphs
// that contain the communicator's calls are gone.
func (l *link) endBy(fn func(communicator) error) error {
	c := l.handle.remove()
	if c == nil {
		return nil
	}
	return l.gpu.apart(func() error { return fn(c) })
}

// disconnect ends the communicator, together with the other ranks if they close within
// closeTime. No call is in progress. After errAborts a thread is still in NCCL.
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
		if err := l.finalize(); err != nil { // the others have not closed, or are dead
			return l.endBy(communicator.Abort)
		}
		if err := l.endBy(communicator.Destroy); err != nil {
			return fmt.Errorf("closing: %w", err)
		}
		return nil
	})
}

// finalize ends the communicator together with the other ranks.
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
