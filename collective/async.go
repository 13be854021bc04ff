package collective

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// maxQueued is the capacity of a group's queue of asynchronous calls. Another
// call blocks until there is room.
const maxQueued = 256

// Work is an asynchronous call.
type Work struct {
	done chan struct{}
	run  func() error
	err  error // set before done is closed
}

// Done is closed when the call is over.
func (w *Work) Done() <-chan struct{} { return w.done }

// Wait returns the call's error once the call is over. If ctx ends first, Wait
// returns its cause, but the call continues and still uses its vectors. Any
// goroutine may call Wait, any number of times.
func (w *Work) Wait(ctx context.Context) error {
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A backlog runs a group's asynchronous calls in the order in which they were
// made, in one goroutine. The first asynchronous call starts it.
type backlog struct {
	pending atomic.Int64 // calls that are queued or in progress
	done    sync.WaitGroup

	mu    sync.Mutex // guards what follows
	queue chan *Work // nil until the first; has room for all that slots admits
	slots chan struct{}
	ended bool
}

// AllReduceAsync is AllReduce in the background. The vector belongs to the
// group until the Work is done. Later calls, synchronous or not, run after it,
// so the order of calls is the caller's order. If 256 calls are queued, it
// waits for room. If ctx ends during that wait, the group breaks, because the
// other ranks do make the call.
func (g *Group) AllReduceAsync(ctx context.Context, v Vector, op Op) *Work {
	var c Call
	err := g.allReduce(&c, &v, op)
	return g.async(ctx, c, err, v, v)
}

// ReduceScatterAsync is ReduceScatter in the background; see AllReduceAsync.
func (g *Group) ReduceScatterAsync(ctx context.Context, dst, src Vector, op Op) *Work {
	var c Call
	err := g.reduceScatter(&c, &dst, &src, nil, op)
	return g.async(ctx, c, err, dst, src)
}

// AllGatherAsync is AllGather in the background; see AllReduceAsync.
func (g *Group) AllGatherAsync(ctx context.Context, dst, src Vector) *Work {
	var c Call
	err := g.allGather(&c, &dst, &src)
	return g.async(ctx, c, err, dst, src)
}

// BroadcastAsync is Broadcast in the background; see AllReduceAsync.
func (g *Group) BroadcastAsync(ctx context.Context, v Vector, root int) *Work {
	var c Call
	err := g.broadcast(&c, &v, root)
	return g.async(ctx, c, err, v, v)
}

// async queues a call, unless its arguments were rejected with err.
func (g *caller) async(ctx context.Context, c Call, err error, dst, src Vector) *Work {
	if err == nil {
		err = g.usable(c.Kind, &dst, &src)
	}
	if err != nil {
		return overWith(err)
	}
	return g.queue(ctx, &c, func() error { return g.carryOut(ctx, &c, &dst, &src, nil) })
}

// queue queues a call that run carries out.
func (g *caller) queue(ctx context.Context, c *Call, run func() error) *Work {
	w, began := &Work{done: make(chan struct{}), run: run}, time.Now()
	err := g.backlog.add(ctx, w, true)
	if err == nil {
		return w
	}
	if g.closed.Load() {
		return overWith(g.refusal(c))
	}
	return overWith(g.giveUp(c, time.Since(began), err))
}

// overWith returns the Work of a call that was not made.
func overWith(err error) *Work {
	w := &Work{done: make(chan struct{}), err: err}
	close(w.done)
	return w
}

// add queues w, after it has waited for room. If the goroutine does not run yet, begin starts
// it. Otherwise nothing can be queued and w is done.
func (b *backlog) add(ctx context.Context, w *Work, begin bool) error {
	slots, err := b.start(begin)
	if err != nil {
		return err
	}
	if slots == nil {
		close(w.done)
		return nil
	}
	select { // without mu, so that other goroutines wait here only until their own contexts end
	case slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		<-slots
		return ErrClosed
	}
	b.pending.Add(1)
	b.queue <- w
	return nil
}

// start returns the slots, or nil if there are none yet. begin then starts the goroutine.
func (b *backlog) start(begin bool) (slots chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil, ErrClosed
	}
	if b.queue == nil && begin {
		b.queue, b.slots = make(chan *Work, maxQueued), make(chan struct{}, maxQueued)
		b.done.Go(b.work)
	}
	return b.slots, nil
}

func (b *backlog) work() {
	for w := range b.queue {
		<-b.slots
		w.err = w.run()
		b.pending.Add(-1) // before done, so that a caller that has waited need not queue up
		close(w.done)
	}
}

// after waits, before a synchronous call, until all earlier asynchronous calls
// are over.
func (b *backlog) after(ctx context.Context) (waited time.Duration, err error) {
	begin := time.Now()
	last := &Work{done: make(chan struct{}), run: func() error { return nil }}
	switch err := b.add(ctx, last, false); {
	case errors.Is(err, ErrClosed):
		return 0, nil // the call itself returns ErrClosed
	case err != nil:
		return time.Since(begin), err
	}
	err = last.Wait(ctx)
	return time.Since(begin), err
}

// end waits for the queued calls. The engine is already closed, so they fail at
// once.
func (b *backlog) end() {
	b.mu.Lock()
	b.ended = true
	if b.queue != nil {
		close(b.queue)
	}
	b.mu.Unlock()
	b.done.Wait()
}
