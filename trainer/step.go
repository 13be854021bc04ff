package trainer

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// Open implements Streamer. With a single bucket, nothing leaves before Step.
func (a *AllReduce) Open(ctx context.Context, p *nn.Params, s Step) (final func(lo int)) {
	a.begin(ctx, p, s)
	if len(a.cuts) == 1 {
		return func(int) {}
	}
	return func(lo int) { a.send(p, lo) }
}

// Abandon implements Streamer.
func (a *AllReduce) Abandon(cause error) {
	if a.probe != nil && a.exchange.sent > 0 { // or the sums of the other ranks would wait for ever
		a.group.Abort(cause)
		_ = a.sums.Wait(a.exchange.ctx) // until the device has let go; cause says more
	}
	a.exchange.close(cause)
}

// Step implements Strategy: it checks this rank's gradients, sends them, waits for
// the sums, agrees with the other ranks on what the step was, and updates. Buckets
// may have left since Open.
func (a *AllReduce) Step(ctx context.Context, p *nn.Params, s Step) (report Report, err error) {
	begin := time.Now()
	if !a.exchange.open {
		a.begin(ctx, p, s)
	}
	defer func() { a.exchange.close(err) }()
	switch {
	case len(a.cuts) == 1 || s.Undivided:
		report, err = a.atOnce(p, s)
	case a.probe == nil:
		report, err = a.inBuckets(p, s)
	default:
		report, err = a.byDevice(p, s)
	}
	if err == nil && report.Weight > 0 {
		err = a.checkSum(p, s)
	}
	if err != nil {
		return report, a.failure(err)
	}
	if report.Weight == 0 { // no rank had rows: only the count changes
		a.state.Step++
		return report, nil
	}
	a.update(p, s, report.Weight)
	report.Update = time.Since(begin) - report.Exchange // checks included
	return report, nil
}

// begin begins a step's exchange.
func (a *AllReduce) begin(ctx context.Context, p *nn.Params, s Step) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.patience.limit(time.Now(), s.Late), collective.ErrLate)
	a.group.Mark(uint64(s.Index))
	a.exchange.begin(ctx, p.Grads.Len())
	context.AfterFunc(a.exchange.ctx, cancel)
}

// atOnce exchanges all gradients in one piece. The words go first: they say whether
// any rank has rows, and stop ranks from adding up what is not finite.
func (a *AllReduce) atOnce(p *nn.Params, s Step) (Report, error) {
	if err := a.computed(); err != nil {
		return Report{}, err
	}
	a.check(p, 0)
	begin := time.Now()
	report, err := a.agree(a.exchange.ctx, p, a.word(p, s))
	if err != nil || report.Weight == 0 {
		return report, err
	}
	if a.compressor != nil {
		a.send(p, 0)
		err = a.wait()
	} else {
		err = a.group.AllReduce(a.exchange.ctx, Operand(p.Grads), collective.Sum)
	}
	if err != nil {
		return report, sumError(s, err)
	}
	return a.account(report, p, 1, begin), nil
}

// inBuckets exchanges gradients in host memory in several buckets. The words follow
// the last one: weight and loss are known only now, and a group makes its calls one
// after the other.
func (a *AllReduce) inBuckets(p *nn.Params, s Step) (Report, error) {
	if err := a.computed(); err != nil {
		return Report{}, err
	}
	begin := time.Now()
	a.send(p, 0)
	if err := a.wait(); err != nil {
		return Report{}, sumError(s, err)
	}
	report, err := a.agree(a.exchange.ctx, p, a.word(p, s))
	if err != nil || report.Weight == 0 {
		return report, err
	}
	return a.account(report, p, a.exchange.sent, begin), nil
}

// byDevice exchanges gradients that a device adds up in buckets. The words go before
// the wait for the sums: the host can name a rank that does not come, and the device
// cannot.
func (a *AllReduce) byDevice(p *nn.Params, s Step) (Report, error) {
	x := &a.exchange
	a.send(p, 0)
	if x.failed != nil {
		return Report{}, sumError(s, x.failed)
	}
	x.bad = a.probe.notFinite(p)
	begin := time.Now()
	report, err := a.agree(x.ctx, p, a.word(p, s))
	if err != nil {
		return report, err
	}
	if err := a.sums.Wait(x.ctx); err != nil {
		return report, sumError(s, err)
	}
	if report.Weight == 0 {
		return report, nil
	}
	return a.account(report, p, x.sent, begin), nil
}

func sumError(s Step, err error) error {
	return fmt.Errorf("trainer: summing the gradients of step %d: %w", s.Index+1, err)
}

// computed waits until the backend has computed this rank's gradients.
func (a *AllReduce) computed() error {
	ctx := a.exchange.ctx
	err := a.backend.Sync(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// check completes this rank's gradients from lo on, and notes the first parameter
// whose gradient is not finite, before it is packed or mixed with others'.
func (a *AllReduce) check(p *nn.Params, lo int) {
	x := &a.exchange
	if lo >= x.checked {
		return
	}
	if a.compressor != nil {
		a.compressor.addResidual(lo, x.checked)
	}
	if bad := a.notFinite(p, lo, x.checked); bad != 0 && x.bad == 0 {
		x.bad = bad
	}
	x.checked = lo
}

// notFinite is that of package trainer, also of gradients in device memory: these
// are copied only if their norm says that something is wrong.
func (a *AllReduce) notFinite(p *nn.Params, lo, hi int) int64 {
	if a.probe == nil {
		return notFinite(p, lo, hi)
	}
	a.probe.look(lo, hi)
	return a.probe.notFinite(p)
}

// send lets the buckets leave that are complete if gradients from lo on are.
func (a *AllReduce) send(p *nn.Params, lo int) {
	x := &a.exchange
	if a.probe == nil {
		a.check(p, lo)
	}
	for ; x.sent < len(a.cuts) && a.cuts[x.sent] >= lo; x.sent++ {
		from, to := a.cuts[x.sent], p.Grads.Len()
		if x.sent > 0 {
			to = a.cuts[x.sent-1]
		}
		switch {
		case a.compressor != nil:
			x.works = append(x.works, a.compressor.send(x.ctx, x.sent))
		case a.probe != nil:
			a.sendByDevice(p.Grads, from, to)
		default:
			x.works = append(x.works, a.group.AllReduceAsync(x.ctx, Operand(p.Grads).Slice(from, to), collective.Sum))
		}
	}
}

// sendByDevice lets a bucket in device memory leave. The probe looks at it before
// other ranks' gradients are added to it; byDevice reads what it found.
func (a *AllReduce) sendByDevice(grads nn.Buffer, from, to int) {
	a.probe.look(from, to)
	if err := a.sums.Sum(grads.Slice(from, to)); a.exchange.failed == nil {
		a.exchange.failed = err
	}
}

// wait waits until the sums of all buckets that were sent are in p.Grads.
func (a *AllReduce) wait() error {
	if err := a.exchange.wait(); err != nil || a.compressor == nil {
		return err
	}
	return a.compressor.receive()
}

// account completes the report of a step whose gradients left in so many buckets.
func (a *AllReduce) account(r Report, p *nn.Params, buckets int, begin time.Time) Report {
	r.Bytes, r.Buckets = 4*p.Grads.Len(), buckets
	r.Sent, r.Plain = a.sent(p, buckets)
	r.Exchange = time.Since(begin)
	return r
}

// update turns the sums in p.Grads into the next values.
func (a *AllReduce) update(p *nn.Params, s Step, weight int) {
	if !s.Undivided {
		a.backend.Scale(p.Grads, 1/float32(weight))
	}
	optim.Step(a.optimizer, a.backend, p, a.state)
	if a.compressor != nil {
		a.compressor.commit()
	}
}

// failure is what the backend says of a step that failed, where that is why
// numbers looked as if they were not finite.
func (a *AllReduce) failure(err error) error {
	var numbers *NotFiniteError
	if a.probe != nil && errors.As(err, &numbers) {
		if broken := a.backend.Sync(a.exchange.ctx); broken != nil {
			return broken
		}
	}
	return err
}

// checkSum finds sums of finite gradients that are not finite. All ranks have
// the same bits, so all find it.
func (a *AllReduce) checkSum(p *nn.Params, s Step) error {
	if a.group.Size() == 1 && a.compressor == nil {
		return nil // what was sent is the sum
	}
	bad := a.notFinite(p, 0, p.Grads.Len())
	if bad == 0 {
		return nil
	}
	all := ranksOf(a.group.View())
	return &NotFiniteError{What: "summed gradient of", Step: s.Index + 1, Parameter: parameterName(p, bad), Ranks: all, Names: names(a.group.View(), all)}
}

// word is this rank's word about a step.
func (a *AllReduce) word(p *nn.Params, s Step) word {
	w := word{step: int64(s.Index), weight: int64(s.Weight), loss: s.Loss, bad: a.exchange.bad}
	if s.Stop {
		w.stop = 1
	}
	if s.Index%hashEvery == 0 {
		w.hash = hash(hostCopy(a.backend, p.Values))
	}
	return w
}

// agree exchanges words with all ranks.
func (a *AllReduce) agree(ctx context.Context, p *nn.Params, w word) (Report, error) {
	w.put(a.mine)
	if err := collective.AllGather(ctx, a.group, a.words, a.mine); err != nil {
		return Report{}, fmt.Errorf("trainer: exchanging step status at step %d: %w", w.step+1, err)
	}
	words := make([]word, a.group.Size())
	for r := range words {
		words[r] = getWord(a.words[r*wordLen:])
	}
	return outcome(words, a.group.View(), p)
}

// sent is the payload that this rank has sent of a step's gradients, which left in
// so many buckets, and what it would have been without compression. Where a device
// sends, it is what the group would send of host memory.
func (a *AllReduce) sent(p *nn.Params, buckets int) (sent, plain int) {
	hi := p.Grads.Len()
	lens := []int{hi}
	if buckets > 1 {
		lens = a.Buckets(p)
	}
	for _, n := range lens {
		plain += a.toSend(p.Grads.Slice(hi-n, hi))
		hi -= n
	}
	if a.compressor == nil {
		return plain, plain
	}
	return a.compressor.sent(), plain
}

// toSend is the payload of gradients that are added up as they are.
func (a *AllReduce) toSend(grads nn.Buffer) int {
	v, size := Operand(grads), a.group.Size()
	plan := a.group.PlanAllReduce(v, collective.Sum)
	if onDevice(grads) {
		s := a.group.Situation()
		plan = s.Plan(v.Len(), v.DType().Size(), true)
	}
	return plan.Sent(size, v.Bytes())
}

// hash is a digest of the values' memory; never 0.
func hash(values []float32) int64 {
	return digest(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values)))
}

// ranksOf is all ranks of a View.
func ranksOf(v collective.View) []int {
	all := make([]int, v.Size())
	for r := range all {
		all[r] = r
	}
	return all
}
