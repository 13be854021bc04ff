package collective

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective/publish"
)

// A limit lets one call of a group run at a time, and enforces its deadline.
// The engine gets the same context for all calls. It ends only if the caller's
// context ends or the deadline passes during a call, and the group is then
// broken anyway. A new context, timer or clock reading per call would add a
// tenth to the time of a small call.
type limit struct {
	most time.Duration // the deadline

	state publish.Word
	done  atomic.Value // Done() of the caller's context that is watched, a <-chan struct{}
	armed atomic.Bool  // the timer runs

	ctx    context.Context // nil until the first call, then always the same
	cancel context.CancelCauseFunc

	mu     sync.Mutex  // guards what follows, and is held while ctx is made
	forget func() bool // ends the watch
	timer  *time.Timer
	watch  uint64 // number of contexts watched, so that an earlier one cannot end a later call
	since  time.Time
	closed bool
}

// The states of a limit.
const (
	idle    = uint64(iota)
	setting // a call begins whose context is not yet watched
	running
	noticed // a call runs that the timer first saw at since
)

// lookings is the number of checks per deadline. A call overruns its deadline
// by at most 1/lookings of it.
const lookings = 16

// begin returns the context for a call, which is valid until finish. It returns
// false if another call is running.
func (l *limit) begin(ctx context.Context) (context.Context, bool) {
	done, state := ctx.Done(), running
	if l.done.Load() != any(done) {
		state = setting
	}
	if !l.state.CompareAndSwap(idle, state) {
		return nil, false
	}
	if l.done.Load() != any(done) {
		l.state.Store(setting) // from here on, the end of the previous context does not affect this call
		l.follow(ctx)
		l.state.Store(running)
	}
	if !l.armed.Load() {
		l.arm()
	}
	if ctx.Err() != nil { // in case ctx ended before the state was running
		l.cancel(context.Cause(ctx))
	}
	return l.ctx, true
}

// finish ends the call.
func (l *limit) finish() { l.state.Publish(idle) }

// follow watches ctx instead of the previous context. Once the limit is closed,
// it watches nothing.
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

// arm starts the timer, which runs until it finds no call.
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

// look is the timer's function. The state remains noticed until the call that
// it saw is over.
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
		if l.state.Load() == idle || l.armed.Swap(true) { // a call that begins from here on arms the timer itself
			return
		}
	}
	l.timer.Reset(l.period())
}

// close stops the timer and stops watching the caller's context. No call is in
// progress, but one may just begin. That call gets a context that has ended.
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
