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

// hashEvery is the number of steps after which ranks compare a hash of their
// values.
const hashEvery = 50

// AllReduce is the strategy in which every rank holds all parameters and its
// own optimizer: gradients are summed over the ranks and divided by all rows,
// and since every rank gets the same bits, every rank makes the same update.
//
// Gradients leave in buckets, each as soon as the backward pass has completed
// it. The step's word, a 64-byte all-gather, goes before the gradients when they
// leave all at once, and after the last bucket when they leave in several, since
// weight and loss are known only then. Either way the update comes after both.
//
// Parameters may be in device memory, if the group's engine reaches it. Then
// gradients leave as they are, from the thread of the backend: in buckets with
// SetSums, and otherwise all at once.
type AllReduce struct {
	group     *collective.Group // of Start
	backend   nn.Backend
	optimizer optim.Optimizer

	state *optim.State
	mine  []int64 // this rank's word
	words []int64 // all ranks'
	pace  pace    // of steps so far

	bucket int // bytes
	cuts   []int
	flight flight

	compression Compression
	compressor  *compressor // nil: gradients leave as they are

	probe *probe // nil: gradients are in host memory, where they are looked at
	sums  Sums   // nil: gradients in device memory leave all at once
}

var (
	_ Strategy = (*AllReduce)(nil)
	_ Streamer = (*AllReduce)(nil)
)

// NewAllReduce makes the strategy; Start gives it a group. The backend and the
// optimizer stay the caller's.
func NewAllReduce(b nn.Backend, o optim.Optimizer) *AllReduce {
	return &AllReduce{backend: b, optimizer: o, bucket: DefaultBucket}
}

// SetBucket sets the least number of bytes of gradients that leave together;
// DefaultBucket otherwise. The result has the same bits whatever it is, but for
// TopK, which chooses within a bucket, and for sums by NCCL, whose order depends on
// the length of a vector. All ranks set the same, before Start.
func (a *AllReduce) SetBucket(bytes int) { a.bucket = bytes }

// Buckets implements Recordable.
func (a *AllReduce) Buckets(p *nn.Params) []int {
	if a.group.Size() == 1 {
		return []int{p.Grads.Len()}
	}
	return Buckets(p, a.bucket)
}

// SetCompression makes gradients smaller before they leave. Each rank keeps
// what is lost for its next step; a rank's micro-batches are added first, so one
// rank with n of them does not make the bits of n ranks. All ranks set the
// same, before Start.
func (a *AllReduce) SetCompression(c Compression) { a.compression = c }

// SetSums has gradients in device memory leave in buckets while the backward pass
// makes others, as those in host memory do. The device computes nothing of the next
// step before the host has heard of this one; see Recording for that. All ranks do
// it, before Start.
func (a *AllReduce) SetSums(s Sums) { a.sums = s }

// Open implements Streamer. Where all gradients make one bucket, nothing leaves
// before Step.
func (a *AllReduce) Open(ctx context.Context, p *nn.Params, s Step) (final func(lo int)) {
	a.begin(ctx, p, s)
	if len(a.cuts) == 1 {
		return func(int) {}
	}
	return func(lo int) { a.send(p, lo) }
}

// Abandon implements Streamer.
func (a *AllReduce) Abandon(cause error) {
	if a.probe != nil && a.flight.sent > 0 { // the other ranks' sums would wait for ever
		a.group.Abort(cause)
		_ = a.sums.Wait(a.flight.ctx) // until the device has let go; the cause says more
	}
	a.flight.land(cause)
}

func (a *AllReduce) begin(ctx context.Context, p *nn.Params, s Step) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.pace.patience(time.Now(), s.Late), collective.ErrLate)
	a.group.Mark(uint64(s.Index))
	a.flight.takeOff(ctx, p.Grads.Len())
	context.AfterFunc(a.flight.ctx, cancel)
}

// complete notes that gradients from lo on are this rank's final ones. What is
// not finite is noticed before it is packed, or mixed with others'.
func (a *AllReduce) complete(p *nn.Params, lo int) {
	f := &a.flight
	if lo >= f.lo {
		return
	}
	if a.compressor != nil {
		a.compressor.addResidual(lo, f.lo)
	}
	if bad := a.notFinite(p, lo, f.lo); bad != 0 && f.bad == 0 {
		f.bad = bad
	}
	f.lo = lo
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

// send lets the buckets leave that are complete when gradients from lo on are.
func (a *AllReduce) send(p *nn.Params, lo int) {
	f := &a.flight
	if a.probe == nil {
		a.complete(p, lo)
	}
	for ; f.sent < len(a.cuts) && a.cuts[f.sent] >= lo; f.sent++ {
		if a.compressor != nil {
			f.works = append(f.works, a.compressor.send(f.ctx, f.sent))
			continue
		}
		from, to := a.cuts[f.sent], p.Grads.Len()
		if f.sent > 0 {
			to = a.cuts[f.sent-1]
		}
		if a.probe != nil {
			a.sendAside(p.Grads, from, to)
			continue
		}
		grads := collective.Of(p.Grads.Float32s()).Slice(from, to)
		f.works = append(f.works, a.group.AllReduceAsync(f.ctx, grads, collective.Sum))
	}
}

// sendAside lets a bucket of device memory leave. What is not finite in it is
// looked for before others' gradients are mixed with it, and heard of later.
func (a *AllReduce) sendAside(grads nn.Buffer, from, to int) {
	a.probe.look(from, to)
	if err := a.sums.Sum(grads.Slice(from, to)); a.flight.failed == nil {
		a.flight.failed = err
	}
}

// Step implements Strategy.
func (a *AllReduce) Step(ctx context.Context, p *nn.Params, s Step) (report Report, err error) {
	begin := time.Now()
	if !a.flight.open {
		a.begin(ctx, p, s)
	}
	defer func() { a.flight.land(err) }()
	if report, err = a.gather(p, s); err != nil {
		return report, a.failure(err)
	}
	if report.Weight > 0 {
		if !s.Undivided {
			a.backend.Scale(p.Grads, 1/float32(report.Weight))
		}
		optim.Step(a.optimizer, a.backend, p, a.state)
		if a.compressor != nil {
			a.compressor.commit()
		}
		report.Update = time.Since(begin) - report.Exchange // and the search for what is not finite
	} else {
		a.state.Step++ // without rows nothing changes but the count
	}
	return report, nil
}

// failure is what the backend says of a step that failed, where that is why
// numbers looked as if they were not finite.
func (a *AllReduce) failure(err error) error {
	var numbers *NotFiniteError
	if a.probe != nil && errors.As(err, &numbers) {
		if broken := a.backend.Sync(a.flight.ctx); broken != nil {
			return broken
		}
	}
	return err
}

// gather exchanges words and gradients: on return p has the sum of all ranks'.
func (a *AllReduce) gather(p *nn.Params, s Step) (Report, error) {
	f := &a.flight
	if a.probe != nil && len(a.cuts) > 1 && !s.Undivided {
		return a.gatherAside(p, s)
	}
	if err := a.backend.Sync(f.ctx); err != nil {
		if f.ctx.Err() != nil {
			err = context.Cause(f.ctx)
		}
		return Report{}, err
	}
	if len(a.cuts) == 1 || s.Undivided {
		a.complete(p, 0)
	}
	begin := time.Now()
	if len(a.cuts) > 1 && !s.Undivided {
		a.send(p, 0)
		if err := a.arrived(); err != nil {
			return Report{}, fmt.Errorf("trainer: summing the gradients of step %d: %w", s.Index+1, err)
		}
	}
	report, err := a.exchange(f.ctx, p, a.word(p, s))
	if err != nil || report.Weight == 0 {
		return report, err
	}
	if f.sent == 0 {
		if err := a.sum(p); err != nil {
			return report, fmt.Errorf("trainer: summing the gradients of step %d: %w", s.Index+1, err)
		}
	}
	report.Bytes, report.Buckets = 4*p.Grads.Len(), max(f.sent, 1)
	report.Sent, report.Plain = a.sent(p, report.Buckets)
	report.Exchange = time.Since(begin)
	return report, a.checkSum(p, s)
}

// gatherAside is gather where a device adds up gradients that have left in buckets.
// The words go first, since the host can name a rank that does not come, and the
// device cannot.
func (a *AllReduce) gatherAside(p *nn.Params, s Step) (Report, error) {
	f := &a.flight
	a.send(p, 0)
	if f.failed != nil {
		return Report{}, fmt.Errorf("trainer: summing the gradients of step %d: %w", s.Index+1, f.failed)
	}
	f.bad = a.probe.notFinite(p)
	begin := time.Now()
	report, err := a.exchange(f.ctx, p, a.word(p, s))
	if err != nil {
		return report, err
	}
	if err := a.sums.Wait(f.ctx); err != nil {
		return report, fmt.Errorf("trainer: summing the gradients of step %d: %w", s.Index+1, err)
	}
	if report.Weight == 0 {
		return report, nil
	}
	report.Bytes, report.Buckets = 4*p.Grads.Len(), f.sent
	report.Sent, report.Plain = a.sent(p, report.Buckets)
	report.Exchange = time.Since(begin)
	return report, a.checkSum(p, s)
}

// sum exchanges gradients all at once.
func (a *AllReduce) sum(p *nn.Params) error {
	if a.compressor == nil {
		return a.group.AllReduce(a.flight.ctx, Operand(p.Grads), collective.Sum)
	}
	a.send(p, 0)
	return a.arrived()
}

// arrived waits for the sums of all buckets that were sent.
func (a *AllReduce) arrived() error {
	if err := a.flight.arrived(); err != nil || a.compressor == nil {
		return err
	}
	return a.compressor.receive()
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

// word is what this rank has to say at a step.
func (a *AllReduce) word(p *nn.Params, s Step) word {
	w := word{step: int64(s.Index), weight: int64(s.Weight), loss: s.Loss, bad: a.flight.bad}
	if s.Stop {
		w.stop = 1
	}
	if s.Index%hashEvery == 0 {
		w.hash = hash(hostCopy(a.backend, p.Values))
	}
	return w
}

// exchange tells all ranks a word and hears theirs.
func (a *AllReduce) exchange(ctx context.Context, p *nn.Params, w word) (Report, error) {
	w.put(a.mine)
	if err := collective.AllGather(ctx, a.group, a.words, a.mine); err != nil {
		return Report{}, fmt.Errorf("trainer: exchanging step status at step %d: %w", w.step+1, err)
	}
	words := make([]word, a.group.Size())
	for r := range words {
		words[r] = getWord(a.words[r*wordLen:])
	}
	return agree(words, a.group.View(), p)
}

// Close implements Strategy.
func (a *AllReduce) Close() error { return nil }

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
