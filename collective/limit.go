package collective

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective/publish"
)

// A limit lets one call of a group run at a time, and ends it. The engine sees
// one context from the first call to the last; it ends when, during a call, the
// caller's context does or the deadline comes, and then the group is broken
// anyway. A context, a timer or a clock reading for each call would cost a small
// one a tenth of its time.
type limit struct {
	most time.Duration // the deadline

	state publish.Word
	done  atomic.Value // of the caller's context that is watched, a <-chan struct{}
	armed atomic.Bool  // the timer runs

	ctx    context.Context // nil until the first call, then the same; the next is its own
	cancel context.CancelCauseFunc

	mu     sync.Mutex  // guards what follows, and is held while ctx is made
	forget func() bool // ends the watch
	timer  *time.Timer
	watch  uint64 // counts the contexts watched, so that a former one ends nothing
	since  time.Time
	closed bool
}

// The states of a limit.
const (
	idle    = uint64(iota)
	setting // a call begins, and its context is not yet watched
	running
	noticed // running, and the timer has seen it, at since
)

// lookings is how often the timer looks in the time of a deadline. A call ends
// between one deadline and one and a lookings-th of it after it began.
const lookings = 16

// begin is the context for a call, until finish; false if another call runs.
func (l *limit) begin(ctx context.Context) (context.Context, bool) {
	done, state := ctx.Done(), running
	if l.done.Load() != any(done) {
		state = setting
	}
	if !l.state.CompareAndSwap(idle, state) {
		return nil, false
	}
	if l.done.Load() != any(done) {
		l.state.Store(setting) // the end of a former context is none of this call's business
		l.follow(ctx)
		l.state.Store(running)
	}
	if !l.armed.Load() {
		l.arm()
	}
	if ctx.Err() != nil { // also if it ended before running was set
		l.cancel(context.Cause(ctx))
	}
	return l.ctx, true
}

// finish says that the call is over.
func (l *limit) finish() { l.state.Publish(idle) }

// follow watches ctx from now on, instead of the one before, and none once the
// limit is closed.
func (l *limit) follow(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithCancelCause(context.Background())
	}
	if l.forget != nil {
		l.forget()
		l.forget = nil
	}
	if l.closed {
		l.cancel(ErrClosed)
		return
	}
	l.watch++
	mine := l.watch
	l.done.Store(ctx.Done())
	if ctx.Done() == nil {
		return
	}
	l.forget = context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if s := l.state.Load(); (s == running || s == noticed) && l.watch == mine {
			l.cancel(context.Cause(ctx))
		}
	})
}

// arm lets the timer look at the calls until there are none.
func (l *limit) arm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.armed.Swap(true) {
		return
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(l.period(), l.look)
	} else {
		l.timer.Reset(l.period())
	}
}

func (l *limit) period() time.Duration { return max(l.most/lookings, 1) }

// look is what the timer does. The state says noticed for as long as the call
// lasts that was noticed.
func (l *limit) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch {
	case l.closed:
		return
	case l.state.CompareAndSwap(running, noticed):
		l.since = now
	case l.state.Load() == noticed && now.Sub(l.since) >= l.most:
		l.cancel(ErrLate)
		return
	case l.state.Load() == idle:
		l.armed.Store(false)
		if l.state.Load() == idle || l.armed.Swap(true) { // who begins from here on arms
			return
		}
	}
	l.timer.Reset(l.period())
}

// close lets go of the timer and of the caller's context. No call is in
// progress, but one may just begin: it gets a context that has ended.
func (l *limit) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.forget != nil {
		l.forget()
		l.forget = nil
	}
	if l.cancel != nil {
		l.cancel(ErrClosed)
	}
}
