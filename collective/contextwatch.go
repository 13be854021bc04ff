package collective

import "context"

// A contextWatch watches the context of the engine's calls. A group passes the
// same context in every call, and ends it only during a call or after the last
// one. So the watch can outlast a call.
type contextWatch struct {
	ctx  context.Context // nil before the first
	done <-chan struct{} // ctx.Done()
	stop func() bool
}

// follow calls do when ctx ends, and stops watching the previous context.
func (w *contextWatch) follow(ctx context.Context, do func()) {
	if w.stop != nil {
		w.stop()
	}
	w.ctx, w.done = ctx, ctx.Done()
	w.stop = context.AfterFunc(ctx, do)
}

// end stops watching for good. It changes nothing, so a call that is about to be refused may
// still read ctx.
func (w *contextWatch) end() {
	if w.stop != nil {
		w.stop()
	}
}

// forget stops watching.
func (w *contextWatch) forget() {
	if w.stop != nil {
		w.stop()
	}
	w.stop, w.ctx, w.done = nil, nil, nil
}
