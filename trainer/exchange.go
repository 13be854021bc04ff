package trainer

import (
	"context"

	"github.com/ringtrain/ringtrain/collective"
)

// An exchange is the buckets of one step on their way. The group's own goroutine
// carries them.
type exchange struct {
	open    bool
	ctx     context.Context // of the step
	end     context.CancelCauseFunc
	sent    int // buckets
	checked int // gradients from here on have been checked
	bad     int64
	works   []*collective.Work
	failed  error // of the first bucket that could not be sent
}

func (x *exchange) begin(ctx context.Context, elements int) {
	*x = exchange{open: true, checked: elements, works: x.works[:0]}
	x.ctx, x.end = context.WithCancelCause(ctx)
}

// wait waits for all buckets and returns the first error. They end with the
// context of the step at the latest.
func (x *exchange) wait() error {
	var first error
	for _, w := range x.works {
		if err := w.Wait(context.Background()); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// close ends an exchange. On return nothing is in flight.
func (x *exchange) close(cause error) {
	if !x.open {
		return
	}
	x.end(cause)
	_ = x.wait() // Step has returned the error, if it got that far
	x.open, x.ctx, x.end = false, nil, nil
}
