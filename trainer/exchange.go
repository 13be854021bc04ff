package trainer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// An exchange sums the gradients of one step after another over the ranks, in
// buckets. Where gradients are in host memory, the group's own goroutine carries the
// buckets, packed by the compressor if there is one. Where they are in device memory,
// the device sums them (sums), or the group does, in one piece.
type exchange struct {
	group      *collective.Group
	backend    nn.Backend
	params     *nn.Params
	cuts       []int       // where buckets begin, from the last
	compressor *compressor // nil: gradients leave as they are
	probe      *probe      // nil: gradients are in host memory
	sums       Sums        // nil: a device's gradients leave in one piece

	open    bool
	ctx     context.Context // of the step
	end     context.CancelCauseFunc
	sent    int   // buckets
	checked int   // gradients from here on have been checked
	bad     int64 // 1 + the index of the first parameter found whose gradient is not finite
	works   []*collective.Work
	failed  error // of the first bucket that could not be given to sums
}

// begin begins a step that ends with ctx, or after limit.
func (x *exchange) begin(ctx context.Context, step int, limit time.Duration) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, collective.ErrLate)
	x.group.Mark(uint64(step))
	x.open, x.sent, x.checked, x.bad, x.works, x.failed = true, 0, x.params.Grads.Len(), 0, x.works[:0], nil
	x.ctx, x.end = context.WithCancelCause(ctx)
	context.AfterFunc(x.ctx, cancel)
}

// computed waits until the backend has computed this rank's gradients.
func (x *exchange) computed() error {
	err := x.backend.Sync(x.ctx)
	if err != nil && x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	return err
}

// check completes this rank's gradients from lo on, and notes the first parameter
// whose gradient is not finite, before it is packed or mixed with others'.
func (x *exchange) check(lo int) {
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

// notFinite is the function of that name, also for device memory. That is copied
// only if the norms of its blocks are suspect.
func (x *exchange) notFinite(lo, hi int) int64 {
	if x.probe == nil {
		return notFinite(x.params, lo, hi)
	}
	x.probe.look(lo, hi)
	return x.probe.notFinite(x.params)
}

// send lets the buckets leave that are complete if gradients from lo on are.
func (x *exchange) send(lo int) {
	if x.probe == nil {
		x.check(lo)
	}
	for ; x.sent < len(x.cuts) && x.cuts[x.sent] >= lo; x.sent++ {
		from, to := x.cuts[x.sent], x.params.Grads.Len()
		if x.sent > 0 {
			to = x.cuts[x.sent-1]
		}
		switch {
		case x.compressor != nil:
			x.works = append(x.works, x.compressor.send(x.ctx, x.sent))
		case x.probe != nil:
			x.sendByDevice(from, to)
		default:
			x.works = append(x.works, x.group.AllReduceAsync(x.ctx, Operand(x.params.Grads).Slice(from, to), collective.Sum))
		}
	}
}

// sendByDevice lets a bucket in device memory leave. The probe looks at it before
// other ranks' gradients are added to it; its findings are read later.
func (x *exchange) sendByDevice(from, to int) {
	x.probe.look(from, to)
	if err := x.sums.Sum(x.params.Grads.Slice(from, to)); x.failed == nil {
		x.failed = err
	}
}

// wait waits until the sums of all buckets that were sent are in params.Grads.
func (x *exchange) wait() error {
	if err := x.landed(); err != nil || x.compressor == nil {
		return err
	}
	return x.compressor.receive()
}

// landed waits for all buckets and returns the first error. They end with the
// context of the step at the latest.
func (x *exchange) landed() error {
	var first error
	for _, w := range x.works {
		if err := w.Wait(context.Background()); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// whole sums all gradients in one piece.
func (x *exchange) whole() error {
	if x.compressor != nil {
		x.send(0)
		return x.wait()
	}
	return x.group.AllReduce(x.ctx, Operand(x.params.Grads), collective.Sum)
}

// checkSum finds sums of finite gradients that are not finite. All ranks have the
// same bits, so all find it.
func (x *exchange) checkSum(step int) error {
	if x.group.Size() == 1 && x.compressor == nil {
		return nil // what was sent is the sum
	}
	bad := x.notFinite(0, x.params.Grads.Len())
	if bad == 0 {
		return nil
	}
	all := ranksOf(x.group.View())
	return &NotFiniteError{What: "summed gradient of", Step: step + 1, Parameter: parameterName(x.params, bad), Ranks: all, Names: names(x.group.View(), all)}
}

// failure is the backend's own error of a step that failed, if that is why numbers
// looked as if they were not finite.
func (x *exchange) failure(err error) error {
	var numbers *NotFiniteError
	if x.probe != nil && errors.As(err, &numbers) {
		if broken := x.backend.Sync(x.ctx); broken != nil {
			return broken
		}
	}
	return err
}

// account completes the report of a step whose gradients left in so many buckets.
func (x *exchange) account(r Report, buckets int, begin time.Time) Report {
	r.Bytes, r.Buckets = 4*x.params.Grads.Len(), buckets
	r.Sent, r.Plain = x.bytes(x.lens(buckets))
	r.Exchange = time.Since(begin)
	return r
}

// lens returns the lengths of this many buckets.
func (x *exchange) lens(buckets int) []int {
	n := x.params.Grads.Len()
	if buckets == 1 {
		return []int{n}
	}
	return lengths(x.cuts, n)
}

// bytes is the payload that this rank has sent of a step's gradients, which left in
// buckets of these lengths, and what it would have been without compression. Of
// device memory it is what the group would send of host memory.
func (x *exchange) bytes(lens []int) (sent, plain int) {
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

// toSend is the payload of gradients that are added up as they are.
func (x *exchange) toSend(grads nn.Buffer) int {
	v, size := Operand(grads), x.group.Size()
	plan := x.group.PlanAllReduce(v, collective.Sum)
	if onDevice(grads) {
		s := x.group.Situation()
		plan = s.Plan(v.Len(), v.DType().Size(), true)
	}
	return plan.Sent(size, v.Bytes())
}

// abandon gives up the step, and breaks the group if a bucket has left.
func (x *exchange) abandon(cause error) {
	if x.probe != nil && x.sent > 0 { // or the sums of the other ranks would wait for ever
		x.group.Abort(cause)
		_ = x.sums.Wait(x.ctx) // until the device has let go; cause says more
	}
	x.close(cause)
}

// close ends the step. On return nothing is in flight.
func (x *exchange) close(cause error) {
	if !x.open {
		return
	}
	x.end(cause)
	_ = x.landed() // Step has returned the error, if it got that far
	x.open, x.ctx, x.end = false, nil, nil
}

func sumError(step int, err error) error {
	return fmt.Errorf("trainer: summing the gradients of step %d: %w", step+1, err)
}
