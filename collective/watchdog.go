package collective

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ringtrain/ringtrain/collective/publish"
)

// A watchdog lets one call of a group run at a time, and ends the call when its
// deadline passes. The engine gets the same context for all calls. It ends only if
// the caller's context ends or the deadline passes during a call, and the group is
// then broken anyway. A new context, timer or clock reading per call would add a
// tenth to the time of a small call.
type watchdog struct {
	most time.Duration // the deadline

	state   publish.Word
	watched atomic.Pointer[watchedContext]
	armed   atomic.Bool                 // the timer runs
	others  atomic.Pointer[atomic.Bool] // whether a call runs of this group or of those that share its connections; nil if there are none

	ctx    context.Context // nil until the first call, then always the same
	cancel context.CancelCauseFunc

	mu     sync.Mutex  // guards what follows, and is held while ctx is made
	forget func() bool // ends the watch
	timer  *time.Timer
	watch  uint64 // number of contexts watched, so that an earlier one cannot end a later call
	since  time.Time
	closed bool
}

// The states of a watchdog.
const (
	idle    = uint64(iota)
	setting // a call begins whose context is not yet watched
	running
	noticed  // a call runs that the timer first saw at since
	reserved // no call may begin, and nothing is watched; see reserve
)

// checksPerDeadline bounds how late a call ends: it overruns its deadline by at
// most 1/checksPerDeadline of it.
const checksPerDeadline = 16

// A watchedContext is a caller's context whose end ends a call.
type watchedContext struct {
	ctx  context.Context
	done <-chan struct{} // ctx.Done()
}

// same reports whether the end of ctx is that of w. w may be nil.
func (w *watchedContext) same(ctx context.Context) bool {
	return w != nil && (identical(w.ctx, ctx) || w.done == ctx.Done())
}

// identical reports whether two contexts are one, or false if that is not easy to tell.
// Unlike ==, it works for all types and calls no function.
func identical(a, b context.Context) bool {
	type words [2]uintptr // of an interface: its type and its value
	return *(*words)(unsafe.Pointer(&a)) == *(*words)(unsafe.Pointer(&b))
}

// begin returns the context for a call, which is valid until finish. It returns
// false if another call is running. If ctx has ended, call expire: it may have ended
// before the state was running.
func (w *watchdog) begin(ctx context.Context) (context.Context, bool) {
	last, state := w.watched.Load(), running
	if !last.same(ctx) {
		state = setting
	}
	if !w.acquire(state) {
		return nil, false
	}
	if state == setting || w.watched.Load() != last {
		w.state.Store(setting) // from here on, the end of the previous context does not affect this call
		w.follow(ctx)
		w.state.Store(running)
	}
	if !w.armed.Load() {
		w.arm()
	}
	return w.ctx, true
}

// expire ends the context of the call because ctx has ended.
func (w *watchdog) expire(ctx context.Context) { w.cancel(context.Cause(ctx)) }

// reserve keeps calls from beginning until finish. It returns false if a call is
// running.
func (w *watchdog) reserve() bool { return w.acquire(reserved) }

// acquire changes the state from idle, unless a call is running.
func (w *watchdog) acquire(state uint64) bool {
	if !w.state.CompareAndSwap(idle, state) {
		return false
	}
	if others := w.others.Load(); others != nil && others.Swap(true) {
		w.state.Publish(idle)
		return false
	}
	return true
}

// finish ends the call, or what reserve began.
func (w *watchdog) finish() {
	if others := w.others.Load(); others != nil {
		others.Store(false)
	}
	w.state.Publish(idle)
}

// join makes the calls of w and of another group exclude each other. None is running.
func (w *watchdog) join(other *watchdog) {
	if other.others.Load() == nil {
		other.others.Store(new(atomic.Bool))
	}
	w.others.Store(other.others.Load())
}

// follow watches ctx instead of the previous context. Once the watchdog is closed,
// it watches nothing.
func (w *watchdog) follow(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx == nil {
		w.ctx, w.cancel = context.WithCancelCause(context.Background())
	}
	if w.forget != nil {
		w.forget()
		w.forget = nil
	}
	if w.closed {
		w.cancel(ErrClosed)
		return
	}
	w.watch++
	mine := w.watch
	done := ctx.Done()
	w.watched.Store(&watchedContext{ctx, done})
	if done == nil {
		return
	}
	w.forget = context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if s := w.state.Load(); (s == running || s == noticed) && w.watch == mine {
			w.cancel(context.Cause(ctx))
		}
	})
}

// arm starts the timer, which runs until it finds no call.
func (w *watchdog) arm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.armed.Swap(true) {
		return
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(w.period(), w.check)
	} else {
		w.timer.Reset(w.period())
	}
}

func (w *watchdog) period() time.Duration { return max(w.most/checksPerDeadline, 1) }

// check is the timer's function. The state remains noticed until the call that
// it saw is over.
func (w *watchdog) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	switch {
	case w.closed:
		return
	case w.state.CompareAndSwap(running, noticed):
		w.since = now
	case w.state.Load() == noticed && now.Sub(w.since) >= w.most:
		w.cancel(ErrLate)
		return
	case w.resting():
		w.armed.Store(false)
		if w.resting() || w.armed.Swap(true) { // a call that begins from here on arms the timer itself
			return
		}
	}
	w.timer.Reset(w.period())
}

// resting reports whether no call is running.
func (w *watchdog) resting() bool {
	s := w.state.Load()
	return s == idle || s == reserved
}

// close stops the timer and stops watching the caller's context. No call is in
// progress, but one may just begin. That call gets a context that has ended.
func (w *watchdog) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.forget != nil {
		w.forget()
		w.forget = nil
	}
	if w.cancel != nil {
		w.cancel(ErrClosed)
	}
}
