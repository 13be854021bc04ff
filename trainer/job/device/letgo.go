package device

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// brokenTime is how long NCCL may take to let go of the stream of a broken group.
const brokenTime = 2 * time.Second

// WhileWhole is ctx, and ends a while after the group breaks, with the reason: what NCCL
// keeps from ending must not keep the rank from saying who is lost. The function ends
// it, too.
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
			if err := a.engine.Err(); !errors.Is(err, collective.ErrLeft) { // a rank that is done keeps nobody from finishing
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

// LetGo ends what a worker has of a GPU, or leaves it to the end of the process, which
// is near: a collective that NCCL never ends keeps the stream busy for ever, and the
// worker has yet to say what went wrong.
func LetGo(end func() error) {
	patience := time.NewTimer(letGoTime)
	defer patience.Stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = end() // what failed has been said
	}()
	select {
	case <-done:
	case <-patience.C:
	}
}
