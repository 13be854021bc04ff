package collective

import (
	"context"
	"sync"
	"time"
)

// A limit ends a group's calls. The engine sees one context from the first call
// to the last; it ends when, during a call, the caller's context does or the
// deadline comes, and then the group is broken anyway. A context for each call
// would cost a small one a tenth of its time.
type limit struct {
	ctx    context.Context // nil until the first call
	cancel context.CancelCauseFunc
	timer  *time.Timer

	done   <-chan struct{} // of the caller's context that is watched
	forget func() bool     // ends the watch

	mu      sync.Mutex
	running bool
	watch   uint64 // counts the contexts watched, so that a former one ends nothing
	due     time.Time
	armed   bool // the timer runs, perhaps to an earlier due
	closed  bool
}

// begin is the context for a call, until finish.
func (l *limit) begin(ctx context.Context, now time.Time, most time.Duration) context.Context {
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithCancelCause(context.Background())
	}
	if ctx.Done() != l.done {
		l.follow(ctx) // before running is set: the end of a former context is none of this call's business
	}
	l.mu.Lock()
	l.running, l.due = true, now.Add(most)
	if !l.armed && !l.closed {
		l.armed = true
		if l.timer == nil {
			l.timer = time.AfterFunc(most, l.ring)
		} else {
			l.timer.Reset(most)
		}
	}
	l.mu.Unlock()
	if ctx.Err() != nil { // also if it ended before running was set
		l.cancel(context.Cause(ctx))
	}
	return l.ctx
}

// follow watches ctx from now on, instead of the one before.
func (l *limit) follow(ctx context.Context) {
	if l.forget != nil {
		l.forget()
		l.forget = nil
	}
	l.mu.Lock()
	l.watch++
	mine := l.watch
	l.mu.Unlock()
	if l.done = ctx.Done(); l.done == nil {
		return
	}
	l.forget = context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.running && l.watch == mine {
			l.cancel(context.Cause(ctx))
		}
	})
}

// ring is what the timer does: it ends a call that is due, or waits on for a
// later one.
func (l *limit) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	if !l.running || l.closed {
		return
	}
	if left := time.Until(l.due); left > 0 {
		l.armed = true
		l.timer.Reset(left)
		return
	}
	l.cancel(ErrLate)
}

// finish says that the call is over.
func (l *limit) finish() {
	l.mu.Lock()
	l.running = false
	l.mu.Unlock()
}

// close lets go of the timer and of the caller's context. No call is in
// progress, and none follows.
func (l *limit) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.forget != nil {
		l.forget()
	}
	if l.cancel != nil {
		l.cancel(ErrClosed)
	}
}
