package device

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// brokenTime is how long NCCL may take to release the stream of a broken group.
const brokenTime = 2 * time.Second

// WhileWhole returns a context that is cancelled shortly after the group breaks, with the
// reason, so that a hung NCCL call cannot stop the rank from reporting the lost peer. Call
// the returned function to release it.
func (a *Accelerator) WhileWhole(ctx context.Context) (context.Context, func()) {
	if a == nil || a.engine == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-a.engine.Broken():
		case <-ctx.Done():
			return
		}
		patience := time.NewTimer(brokenTime)
		defer patience.Stop()
		select {
		case <-patience.C:
			if err := a.engine.Err(); !errors.Is(err, collective.ErrLeft) { // a peer that finished normally is no failure
				cancel(err)
			}
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		watch.Wait()
	}
}

// letGoTime is how long a worker waits for its GPU at the end.
const letGoTime = 3 * time.Second

// LetGo calls end, which releases a worker's GPU resources, but gives up after letGoTime: a
// hung collective would block forever, and process exit frees them anyway.
func LetGo(end func() error) {
	patience := time.NewTimer(letGoTime)
	defer patience.Stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = end() // already reported
	}()
	select {
	case <-done:
	case <-patience.C:
	}
}
