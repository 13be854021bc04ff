package collective

import "context"

// AbortOnCancel makes the end of ctx break t, as rank self's failure, until stop is
// called. A Transport calls it where it waits: other ranks then learn at once that
// this rank no longer takes part. It allocates nothing if ctx cannot end.
func AbortOnCancel(ctx context.Context, t Transport, self int) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() {
		t.Abort(&RankError{Rank: self, Phase: "cancelled", Err: context.Cause(ctx)})
	})
}

// WakeOnCancel calls wake when ctx ends, until stop is called. Once stop has returned,
// wake does not run any more. A Transport calls it where a wait ends with ctx and
// breaks nothing.
func WakeOnCancel(ctx context.Context, wake func()) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	woken := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(woken)
		wake()
	})
	return func() {
		if !forget() {
			<-woken
		}
	}
}
