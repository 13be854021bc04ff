package trainer

import (
	"context"
	"time"
	"unsafe"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// Open implements Streamer. With a single bucket, nothing leaves before Step.
func (a *AllReduce) Open(ctx context.Context, _ *nn.Params, s Step) (final func(lo int)) {
	a.begin(ctx, s)
	if len(a.gradients.cuts) == 1 {
		return func(int) {}
	}
	return a.gradients.sendBuckets
}

// Abandon implements Streamer.
func (a *AllReduce) Abandon(cause error) { a.gradients.abandon(cause) }

// Step implements Strategy: it checks this rank's gradients, sends them, waits for
// the sums, agrees with the other ranks on what the step was, and updates. Buckets
// may have left since Open.
func (a *AllReduce) Step(ctx context.Context, p *nn.Params, s Step) (report Report, err error) {
	begin, x := time.Now(), &a.gradients
	if !x.open {
		a.begin(ctx, s)
	}
	defer func() { x.close(err) }()
	switch {
	case x.rows == nil && (len(x.cuts) == 1 || s.Undivided):
		report, err = a.atOnce(p, s)
	case x.device == nil:
		report, err = a.inBuckets(p, s)
	default:
		report, err = a.byDevice(p, s)
	}
	if err == nil && report.Weight > 0 {
		err = x.checkSum(s.Index)
	}
	if err != nil {
		return report, x.failure(err)
	}
	if report.Weight == 0 { // no rank had rows: only the count changes
		a.state.Step++
		return report, nil
	}
	a.update(p, s, report.Weight)
	report.Cleared = true
	report.Update = time.Since(begin) - report.Exchange // checks included
	return report, nil
}

func (a *AllReduce) begin(ctx context.Context, s Step) {
	a.gradients.begin(ctx, s.Index, a.agreement.timeout.begin(time.Now(), 1, s.Late))
}

// atOnce exchanges all gradients in one piece. The words go first: they say whether
// any rank has rows, and keep ranks from adding up what is not finite.
func (a *AllReduce) atOnce(p *nn.Params, s Step) (Report, error) {
	x := &a.gradients
	if err := x.computed(); err != nil {
		return Report{}, err
	}
	x.check(0)
	begin := time.Now()
	report, err := a.agreement.Step(x.ctx, p, s, x.bad)
	if err != nil || report.Weight == 0 {
		return report, err
	}
	if err := x.sendWhole(); err != nil {
		return report, sumError(s.Index, err)
	}
	return x.account(report, 1, begin), nil
}

// inBuckets exchanges gradients in host memory in several buckets. The words follow
// the last one: weight and loss are known only now, and a group makes its calls one
// after the other. Tables that leave by rows follow the words, which carry the numbers of
// their rows.
func (a *AllReduce) inBuckets(p *nn.Params, s Step) (Report, error) {
	x := &a.gradients
	if err := x.computed(); err != nil {
		return Report{}, err
	}
	begin := time.Now()
	x.sendBuckets(0)
	if err := x.wait(); err != nil {
		return Report{}, sumError(s.Index, err)
	}
	if x.rows != nil {
		x.rows.count(a.agreement.carries())
	}
	report, err := a.agreement.Step(x.ctx, p, s, x.bad)
	if err != nil || report.Weight == 0 {
		return report, err
	}
	if x.rows != nil {
		if err := x.rows.sum(x.ctx, a.agreement.carried); err != nil {
			return report, sumError(s.Index, err)
		}
	}
	return x.account(report, x.sent, begin), nil
}

// byDevice exchanges gradients that a device sums in buckets. The words go before
// the wait for the sums: the host can name a rank that does not come, and the device
// cannot. The barrier comes after it: if a rank breaks off its sums, those of the
// others can end with garbage and without an error. A rank that enters the barrier
// has waited for its sums without a failure.
func (a *AllReduce) byDevice(p *nn.Params, s Step) (Report, error) {
	x := &a.gradients
	x.sendBuckets(0)
	if x.failed != nil {
		return Report{}, sumError(s.Index, x.failed)
	}
	x.bad = x.device.notFinite(p)
	begin := time.Now()
	report, err := a.agreement.Step(x.ctx, p, s, x.bad)
	if err != nil {
		return report, err
	}
	if err := x.summer.Wait(x.ctx); err != nil {
		return report, sumError(s.Index, err)
	}
	if err := x.group.Barrier(x.ctx); err != nil {
		return report, sumError(s.Index, err)
	}
	if report.Weight == 0 {
		return report, nil
	}
	return x.account(report, x.sent, begin), nil
}

// update turns the sums in p.Grads into the next values, and zeroes them.
func (a *AllReduce) update(p *nn.Params, s Step, weight int) {
	scale := float32(1)
	if !s.Undivided {
		scale /= float32(weight)
	}
	optim.Spend(a.optimizer, a.backend, p, a.state, scale)
	if z := a.gradients.compressor; z != nil {
		z.commit()
	}
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
