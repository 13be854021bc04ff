package trainer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// A gradientExchange sums gradients over the ranks, step by step. This is where
// gradients leave the rank.
//
//   - Those in host memory leave in buckets. The group's own goroutine sends them,
//     packed by the compressor if there is one.
//   - With rows, a table has a bucket of its own, which can leave as rows after the words.
//   - Those in device memory leave in buckets if there is a summer. Otherwise the group
//     sums them in one piece.
type gradientExchange struct {
	group      *collective.Group
	backend    nn.Backend
	params     *nn.Params
	cuts       []int          // where buckets begin, from the last
	compressor *compressor    // nil: gradients leave as they are
	device     *deviceFinite  // nil: gradients are in host memory
	summer     GradientSummer // nil: gradients in device memory leave in one piece
	rows       *rowExchange   // nil: gradients of tables leave in buckets, too
	tables     []bool         // by bucket: it is a table of rows
	waits      []bool         // by bucket: it is a table that waits in this step

	open    bool
	step    int
	ctx     context.Context // of the step
	end     context.CancelCauseFunc
	sent    int   // buckets
	checked int   // gradients from here on have been checked
	bad     int64 // 1 + the index of the first parameter found whose gradient is not finite
	works   []*collective.Work
	failed  error // of the first bucket that the summer did not accept
}

// begin begins a step. The step's context ends with ctx, or after limit.
func (x *gradientExchange) begin(ctx context.Context, step int, limit time.Duration) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, collective.ErrLate)
	x.group.Mark(uint64(step))
	x.step = step
	x.open, x.sent, x.checked, x.bad, x.works, x.failed = true, 0, x.params.Grads.Len(), 0, x.works[:0], nil
	x.ctx, x.end = context.WithCancelCause(ctx)
	if x.rows != nil {
		x.rows.mark(x.waits, x.tables)
	}
	context.AfterFunc(x.ctx, cancel)
}

// computed waits until the backend has computed this rank's gradients.
func (x *gradientExchange) computed() error {
	err := x.backend.Sync(x.ctx)
	if err == nil || x.ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(x.ctx); errors.Is(cause, collective.ErrLate) {
		return fmt.Errorf("trainer: this process took longer for the gradients of step %d than a step may take; was it suspended? %w", x.step, cause)
	}
	return context.Cause(x.ctx)
}

// check adds the residual to this rank's gradients from lo on. Then it notes the first
// parameter whose gradient is not finite, before it is packed or summed.
func (x *gradientExchange) check(lo int) {
	if lo >= x.checked {
		return
	}
	if x.compressor != nil {
		x.compressor.addResidual(lo, x.checked)
	}
	if bad := x.notFinite(lo, x.checked); bad != 0 && x.bad == 0 {
		x.bad = bad
	}
	x.checked = lo
}

// notFinite is the function of that name for host and device memory.
func (x *gradientExchange) notFinite(lo, hi int) int64 {
	if x.device == nil {
		return notFinite(x.params, lo, hi)
	}
	x.device.queue(lo, hi)
	return x.device.notFinite(x.params)
}

// sendBuckets sends the buckets that are complete if gradients from lo on are.
func (x *gradientExchange) sendBuckets(lo int) {
	if x.device == nil {
		x.check(lo)
	}
	for ; x.sent < len(x.cuts) && x.cuts[x.sent] >= lo; x.sent++ {
		from, to := x.cuts[x.sent], x.params.Grads.Len()
		if x.sent > 0 {
			to = x.cuts[x.sent-1]
		}
		switch {
		case x.rows != nil && x.waits[x.sent]:
		case x.compressor != nil:
			x.works = append(x.works, x.compressor.send(x.ctx, x.sent))
		case x.device != nil:
			x.sendByDevice(from, to)
		default:
			x.works = append(x.works, x.group.AllReduceAsync(x.ctx, Operand(x.params.Grads).Slice(from, to), collective.Sum))
		}
	}
}

// sendByDevice sends a bucket in device memory. Its norms are queued first, before other
// ranks' gradients are added to it, and read later.
func (x *gradientExchange) sendByDevice(from, to int) {
	x.device.queue(from, to)
	if err := x.summer.Sum(x.params.Grads.Slice(from, to)); x.failed == nil {
		x.failed = err
	}
}

// wait waits until the sums of all sent buckets are in params.Grads.
func (x *gradientExchange) wait() error {
	if err := x.landed(); err != nil || x.compressor == nil {
		return err
	}
	return x.compressor.receive()
}

// landed waits for all sent buckets and returns the first error. It returns when the
// context of the step ends, at the latest.
func (x *gradientExchange) landed() error {
	var first error
	for _, w := range x.works {
		if err := w.Wait(context.Background()); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// sendWhole sends all gradients and waits for the sums. Without a compressor they leave
// in one piece.
func (x *gradientExchange) sendWhole() error {
	if x.compressor != nil {
		x.sendBuckets(0)
		return x.wait()
	}
	return x.group.AllReduce(x.ctx, Operand(x.params.Grads), collective.Sum)
}

// checkSum returns an error if sums of finite gradients are not finite. All ranks have
// the same bits, so all get the error.
func (x *gradientExchange) checkSum(step int) error {
	if x.group.Size() == 1 && x.compressor == nil {
		return nil // what was sent is the sum
	}
	bad := x.notFinite(0, x.params.Grads.Len())
	if bad == 0 {
		return nil
	}
	return sumNotFinite(x.group.View(), step, parameterName(x.params, bad))
}

// failure returns the backend's error instead of err if a broken device is why numbers
// seemed not to be finite.
func (x *gradientExchange) failure(err error) error {
	var numbers *NotFiniteError
	if x.device != nil && errors.As(err, &numbers) {
		if broken := x.backend.Sync(x.ctx); broken != nil {
			return broken
		}
	}
	return err
}

// account completes the report of a step whose gradients left in this many buckets.
func (x *gradientExchange) account(r Report, buckets int, begin time.Time) Report {
	r.Bytes, r.Buckets = 4*x.params.Grads.Len(), buckets
	r.Sent, r.Plain = x.bytes(x.lens(buckets))
	if x.rows != nil {
		r = x.accountRows(r)
	}
	r.Exchange = time.Since(begin)
	return r
}

// accountRows corrects what a report says of tables.
func (x *gradientExchange) accountRows(r Report) Report {
	r.Sent, r.Buckets = r.Sent+x.rows.sent, r.Buckets+x.rows.calls
	hi := x.params.Grads.Len()
	for i, lo := range x.cuts {
		if x.waits[i] {
			r.Sent, r.Buckets = r.Sent-x.toSend(x.params.Grads.Slice(lo, hi)), r.Buckets-1
		}
		hi = lo
	}
	for _, as := range x.rows.asRows {
		if as {
			r.AsRows++
		}
	}
	return r
}

// lens returns the lengths of this many buckets.
func (x *gradientExchange) lens(buckets int) []int {
	n := x.params.Grads.Len()
	if buckets == 1 {
		return []int{n}
	}
	return lengths(x.cuts, n)
}

// bytes returns the payload in bytes that this rank sends per step if gradients leave in
// buckets of these lengths, with and without compression. For gradients in device memory
// it is what the group would send if they were in host memory.
func (x *gradientExchange) bytes(lens []int) (sent, plain int) {
	hi := x.params.Grads.Len()
	for _, n := range lens {
		plain += x.toSend(x.params.Grads.Slice(hi-n, hi))
		hi -= n
	}
	if x.compressor == nil {
		return plain, plain
	}
	return x.compressor.sent(), plain
}

// toSend is the payload that this rank sends for gradients without compression.
func (x *gradientExchange) toSend(grads nn.Buffer) int {
	v, size := Operand(grads), x.group.Size()
	plan := x.group.PlanAllReduce(v, collective.Sum)
	if onDevice(grads) {
		s := x.group.Situation()
		plan = s.Plan(v.Len(), v.DType().Size(), true)
	}
	return plan.Sent(size, v.Bytes())
}

// abandon ends a step that cannot be completed. It breaks the group if a bucket has left.
func (x *gradientExchange) abandon(cause error) {
	if x.device != nil && x.sent > 0 { // otherwise the sums of other ranks would wait forever
		x.group.Abort(cause)
		_ = x.summer.Wait(x.ctx) // until the device no longer uses the gradients; cause says more
	}
	x.close(cause)
}

// close ends the step. On return nothing is in flight.
func (x *gradientExchange) close(cause error) {
	if !x.open {
		return
	}
	x.end(cause)
	_ = x.landed() // Step has returned the error, if there was a Step
	x.open, x.ctx, x.end = false, nil, nil
}

func sumError(step int, err error) error {
	return fmt.Errorf("trainer: summing the gradients of step %d: %w", step+1, err)
}
