package trainer

import (
	"context"
	"slices"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// DefaultBucket is the least number of bytes of gradients that leave together.
const DefaultBucket = 1 << 20

// cuts is where buckets of at least so many bytes begin, from the last one, in
// the order in which a backward pass completes them. A bucket is whole
// parameters; the last of them, at 0, has what is left. Ranks have the same
// parameters, so they cut alike, whatever their models report and when.
func cuts(p *nn.Params, bytes int) []int {
	var at []int
	end := p.Grads.Len()
	for _, q := range slices.Backward(p.List) {
		if q.Offset > 0 && 4*(end-q.Offset) >= bytes {
			at, end = append(at, q.Offset), q.Offset
		}
	}
	return append(at, 0)
}

// Buckets is how many gradients leave together, in the order in which they
// leave, where several ranks exchange them in buckets of at least so many bytes.
func Buckets(p *nn.Params, bytes int) []int {
	var lens []int
	hi := p.Grads.Len()
	for _, lo := range cuts(p, bytes) {
		lens, hi = append(lens, hi-lo), lo
	}
	return lens
}

// A flight is the buckets of one step on their way. They are carried in the
// group's own goroutine.
type flight struct {
	open   bool
	ctx    context.Context // of the step
	end    context.CancelCauseFunc
	sent   int // buckets
	lo     int // gradients from here on have been looked at
	bad    int64
	works  []*collective.Work
	failed error // to send
}

// takeOff begins a flight.
func (f *flight) takeOff(ctx context.Context, elements int) {
	f.open, f.sent, f.lo, f.bad, f.works, f.failed = true, 0, elements, 0, f.works[:0], nil
	f.ctx, f.end = context.WithCancelCause(ctx)
}

// arrived waits for all buckets and returns the first error. The context of the
// step ends them in any case.
func (f *flight) arrived() error {
	var first error
	for _, w := range f.works {
		if err := w.Wait(context.Background()); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// land ends a flight; nothing of it is in the air afterwards.
func (f *flight) land(cause error) {
	if !f.open {
		return
	}
	f.end(cause)
	f.arrived()
	f.open, f.ctx, f.end = false, nil, nil
}
