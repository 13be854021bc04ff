package trainer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// ahead is the number of launches queued behind the one that the host waits for. One
// keeps the device busy.
const ahead = 1

// A recorder is a stepper whose steps are recorded and repeated.
type recorder struct {
	*loop
	strategy Recordable
	rows     Resident
	pacer    nn.Pacer
	pace     nn.Pace
	each     int   // steps of a launch
	buckets  []int // of gradients, as they leave

	committer  nn.Committer // nil if updates need no votes
	votes      nn.Buffer
	recordings map[plan]func() error
	placed     int         // the rows of steps before this one are prepared
	pending    []launch    // losses not read yet
	collected  time.Time   // when the last losses were read; with none pending, when a launch began
	timeout    stepTimeout // of launches
}

// A plan is what steps must have in common for one recording to repeat them.
type plan struct {
	steps     int
	mine, all int // rows
	form      optim.Form
}

// A launch is a number of steps queued at once.
type launch struct {
	plan
	first int // step
}

func newRecorder(l *loop) (*recorder, error) {
	if l.place.Size() > 1 && l.Recording.Summer == nil {
		return nil, fmt.Errorf("trainer: steps cannot be recorded: there are %d ranks, and Recording.Summer is nil", l.place.Size())
	}
	r := &recorder{
		loop: l, strategy: l.Strategy.(Recordable), rows: l.Task.(Resident), pacer: l.Backend.(nn.Pacer),
		each: max(1, l.Recording.Steps), recordings: map[plan]func() error{}, placed: l.place.Step,
	}
	r.buckets = []int{r.params.Grads.Len()}
	if r.sums() && !r.Recording.Apart {
		r.buckets = r.strategy.Buckets(r.params)
	}
	r.pace = r.pacer.NewPace(nn.PaceConfig{
		Random: nn.Stream{Seed: l.Seed, First: l.place.Rank(), Stride: l.place.Size()},
		Hyper:  func(step int) [nn.HyperLen]float32 { h, _ := r.strategy.Hyper(step); return h },
		Keep:   max(nn.DefaultKeep, (ahead+3)*r.each),
	})
	if c, ok := r.pace.(nn.Committer); ok && r.sums() {
		r.committer, r.votes = c, r.pacer.Alloc(nn.VoteLen)
	}
	r.pacer.Zero(r.params.Grads) // from now on updates do
	return r, nil
}

// advance is part of stepper: it queues one launch, and leaves at most ahead
// launches unfinished.
func (r *recorder) advance(ctx context.Context, first, limit int) (begun int, stopped bool, err error) {
	if len(r.pending) == 0 { // the loop may have evaluated or saved since
		r.collected = time.Now()
	}
	l := r.next(first, limit)
	if err := r.queue(ctx, l); err != nil {
		return first, false, fmt.Errorf("trainer: steps %d to %d on rank %d: %w", l.first+1, l.first+l.steps, r.place.Rank(), err)
	}
	begun = first + l.steps
	room := ahead
	if begun == limit {
		room = 0
	}
	if stopped, err = r.collect(ctx, room); stopped && err == nil {
		_, err = r.collect(ctx, 0)
	}
	return begun, stopped, err
}

// next is the next launch: steps that one recording can hold, up to limit.
func (r *recorder) next(step, limit int) launch {
	l := launch{r.planOf(step), step}
	for l.form != (optim.Form{}) && l.steps < r.each && step+l.steps < limit && r.planOf(step+l.steps) == r.planOf(step) {
		l.steps++
	}
	if step >= r.placed {
		first, steps := r.rows.Seek(step)
		r.pace.Seek(step, first)
		r.placed = step + steps
	}
	l.steps = min(l.steps, r.placed-step)
	return l
}

func (r *recorder) planOf(step int) plan {
	p := plan{steps: 1}
	p.mine, p.all = r.rows.Rows(step)
	_, p.form = r.strategy.Hyper(step)
	return p
}

// queue queues a launch. A plan that is new is recorded first. Nothing is pending
// on any rank then: sums may not be queued by themselves while a recording that
// holds sums runs.
func (r *recorder) queue(ctx context.Context, l launch) error {
	defer func() { r.pending = append(r.pending, l) }()
	if replay := r.recordings[l.plan]; replay != nil {
		return replay()
	}
	if r.sums() {
		if err := r.pacer.Sync(ctx); err != nil {
			return err
		}
	}
	replay, err := r.record(l)
	r.recordings[l.plan] = replay
	return err
}

// record queues the steps of a launch and returns the function that repeats them, or
// nil if the update has no Form and cannot be repeated.
func (r *recorder) record(l launch) (func() error, error) {
	key := fmt.Sprintf("%d steps of %d rows of %d, update %v", l.steps, l.mine, l.all, l.form)
	switch {
	case l.form == optim.Form{}:
		return nil, r.step(l.plan, l.first)
	case r.Recording.Apart && r.sums():
		return r.apart(l, key)
	}
	return r.pacer.Record(key, func() error {
		for k := range l.steps {
			if err := r.step(l.plan, l.first+k); err != nil {
				return err
			}
		}
		return nil
	})
}

// apart records a step in two parts, with the sum between them, and queues the steps
// of l.
func (r *recorder) apart(l launch, key string) (func() error, error) {
	var loss nn.Buffer
	before, err := r.pacer.Record(key+", to the gradients", func() (err error) { loss, err = r.learn(l.plan, nil); return err })
	if err != nil {
		return nil, err
	}
	sum := func() error { return errors.Join(r.sumAll(r.params.Grads), r.vote()) }
	if err := sum(); err != nil {
		return nil, err
	}
	after, err := r.pacer.Record(key+", from the sums", func() error { r.update(l.plan, l.first, loss); return nil })
	if err != nil {
		return nil, err
	}
	steps := func(n int) error {
		for range n {
			for _, part := range []func() error{before, sum, after} {
				if err := part(); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return func() error { return steps(l.steps) }, steps(l.steps - 1)
}

// step queues a step.
func (r *recorder) step(p plan, index int) error {
	var sum func(nn.Buffer) error
	if r.sums() {
		sum = r.Recording.Summer.Sum
	}
	loss, err := r.learn(p, sum)
	if err != nil {
		return err
	}
	if r.sums() {
		if err := r.Recording.Summer.Join(); err != nil {
			return err
		}
	}
	if err := r.vote(); err != nil {
		return err
	}
	r.update(p, index, loss)
	return nil
}

// learn queues a step up to this rank's gradients and passes them to sum, if that is
// not nil, bucket by bucket.
func (r *recorder) learn(p plan, sum func(nn.Buffer) error) (loss nn.Buffer, err error) {
	s := newBucketSender(r.params.Grads, r.buckets, func(bucket nn.Buffer) error {
		if r.Reduce == ReduceSum {
			r.pacer.Scale(bucket, 1/float32(max(r.weight(p.mine), 1)))
		}
		if sum == nil {
			return nil
		}
		return sum(bucket)
	})
	pass := nn.Pass{Backend: r.pacer, Train: true, Zeroed: true, Random: r.pace.Random(), Final: s.final}
	loss, weight, err := r.rows.LearnAt(&pass, r.pace, p.mine)
	if want := r.weight(p.mine); err == nil && weight != want {
		err = fmt.Errorf("the weight of a batch of %d rows is %d, not %d; recorded steps need a model that gives every row the same weight", p.mine, weight, want)
	}
	if err != nil {
		return loss, err
	}
	s.final(0) // for models that never call Final
	return loss, s.err
}

// weight returns the weight of rows in the gradient.
func (r *recorder) weight(rows int) int { return rows * r.rows.RowWeight() }

// sums reports whether gradients are summed over several ranks.
func (r *recorder) sums() bool { return r.place.Size() > 1 }

// sumAll queues a sum over ranks and makes later work wait for it.
func (r *recorder) sumAll(v nn.Buffer) error {
	if err := r.Recording.Summer.Sum(v); err != nil {
		return err
	}
	return r.Recording.Summer.Join()
}

// update queues the rest of a step.
func (r *recorder) update(p plan, index int, loss nn.Buffer) {
	scale := float32(1)
	if r.Reduce == ReduceMean {
		scale /= float32(r.weight(p.all))
	}
	if r.committer != nil {
		r.committer.Commit(r.votes, r.place.Size())
	}
	r.strategy.Queue(r.params, index, p.form, r.pace.Hyper(), scale)
	r.pace.Tick(loss, p.mine)
}

// collect waits for launches until at most room are pending, and reports whether a
// rank asked to stop.
func (r *recorder) collect(ctx context.Context, room int) (stopped bool, err error) {
	for len(r.pending) > room {
		l := r.pending[0]
		r.pending = r.pending[1:]
		losses := make([]float32, l.steps)
		if err := r.await(ctx, l, losses); err != nil {
			return false, fmt.Errorf("trainer: steps %d to %d on rank %d: %w", l.first+1, l.first+l.steps, r.place.Rank(), err)
		}
		stop, err := r.report(ctx, l, losses)
		if err != nil {
			return false, err
		}
		stopped = stopped || stop
	}
	return stopped, nil
}

// await waits for the losses of a launch, for at most 20 times its usual duration. The
// device waits inside the launch for ranks that do not join its sums, and if they are
// alive nothing else reports them.
func (r *recorder) await(ctx context.Context, l launch, losses []float32) error {
	limit := r.timeout.begin(time.Now(), l.steps, r.due(l.first))
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf(
		"the device has not finished them in %v: it hangs, or the device of another rank does; check the devices of all ranks with nvidia-smi", limit))
	defer cancel()
	return r.pace.Losses(ctx, l.first, losses)
}

// report confirms the steps of a launch and passes them to the observer.
func (r *recorder) report(ctx context.Context, l launch, losses []float32) (stopped bool, err error) {
	now := time.Now()
	compute := now.Sub(r.collected) / time.Duration(l.steps)
	r.collected = now
	steps := make([]Step, l.steps)
	wish := r.wishesToStop()
	for k := range steps {
		index := l.first + k
		steps[k] = Step{Index: index, Weight: r.weight(l.mine), Loss: float64(losses[k]), Stop: wish, Late: r.due(index), Undivided: r.Reduce != ReduceMean, Buckets: len(r.buckets)}
	}
	reports, err := r.strategy.Confirm(ctx, r.params, steps)
	if err != nil {
		return false, err
	}
	if err := r.committed(l); err != nil {
		return false, err
	}
	for k, report := range reports {
		r.count(l.first+k, report)
		if r.Observer != nil {
			r.Observer.Stepped(StepEvent{Report: report, Step: l.first + k + 1, Compute: compute, Elapsed: time.Since(r.begin)})
		}
		stopped = stopped || report.Stop
	}
	return stopped, nil
}
