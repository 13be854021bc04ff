package collective

import (
	"context"
	"sync"
)

// maxQueued is how many asynchronous calls of a group may wait; one more waits
// for room.
const maxQueued = 256

// Work is an asynchronous call.
type Work struct {
	done chan struct{}
	run  func() error
	err  error // set before done is closed
}

// Done is closed when the call is over.
func (w *Work) Done() <-chan struct{} { return w.done }

// Wait returns the call's error when it is over, or the context's when that
// ends first; the call goes on then, and its vectors are still in use. It may
// be called any number of times, from anywhere.
func (w *Work) Wait(ctx context.Context) error {
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A backlog runs a group's asynchronous calls in the order in which they were
// made, in one goroutine. It is started by the first of them.
type backlog struct {
	mu    sync.Mutex
	queue chan *Work // nil until the first
	done  sync.WaitGroup
	ended bool
}

// AllReduceAsync is AllReduce in the background. The vector belongs to the
// group until the Work is done. Calls made meanwhile, of either form, are
// carried out after it, so the order of calls stays the caller's.
func (g *Group) AllReduceAsync(ctx context.Context, v Vector, op Op) *Work {
	return g.async(func() error { return g.AllReduce(background(ctx), v, op) })
}

// ReduceScatterAsync is ReduceScatter in the background; see AllReduceAsync.
func (g *Group) ReduceScatterAsync(ctx context.Context, dst, src Vector, op Op) *Work {
	return g.async(func() error { return g.ReduceScatter(background(ctx), dst, src, op) })
}

// AllGatherAsync is AllGather in the background; see AllReduceAsync.
func (g *Group) AllGatherAsync(ctx context.Context, dst, src Vector) *Work {
	return g.async(func() error { return g.AllGather(background(ctx), dst, src) })
}

// BroadcastAsync is Broadcast in the background; see AllReduceAsync.
func (g *Group) BroadcastAsync(ctx context.Context, v Vector, root int) *Work {
	return g.async(func() error { return g.Broadcast(background(ctx), v, root) })
}

// inBackground marks the context of a call that the backlog itself makes.
type inBackground struct{}

func background(ctx context.Context) context.Context {
	return context.WithValue(ctx, inBackground{}, true)
}

// async queues a call.
func (g *Group) async(run func() error) *Work {
	w := &Work{done: make(chan struct{}), run: run}
	b := &g.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		w.err = ErrClosed
		close(w.done)
		return w
	}
	if b.queue == nil {
		b.queue = make(chan *Work, maxQueued)
		b.done.Go(b.work)
	}
	b.queue <- w
	return w
}

func (b *backlog) work() {
	for w := range b.queue {
		w.err = w.run()
		close(w.done)
	}
}

// after waits for the asynchronous calls made so far, before a synchronous one.
func (b *backlog) after(ctx context.Context) error {
	if ctx.Value(inBackground{}) != nil {
		return nil
	}
	b.mu.Lock()
	if b.queue == nil || b.ended {
		b.mu.Unlock()
		return nil
	}
	last := &Work{done: make(chan struct{}), run: func() error { return nil }}
	b.queue <- last
	b.mu.Unlock()
	return last.Wait(ctx)
}

// end waits for what is queued; the engine is closed, so that fails at once.
func (b *backlog) end() {
	b.mu.Lock()
	b.ended = true
	if b.queue != nil {
		close(b.queue)
	}
	b.mu.Unlock()
	b.done.Wait()
}
