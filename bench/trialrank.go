package bench

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// countTime is how long the ranks wait for the launcher to read counters before they
// begin.
const countTime = 100 * time.Millisecond

// Work runs one worker process of one trial.
func (f *ScalingRun) Work(ctx context.Context, w *crew.Worker) error {
	s, err := f.training(f.Config, f.System, max(w.Place.LocalSize, 1)).Settle()
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	level.Set(slog.LevelError)
	node, err := w.Join(level)
	if err != nil {
		return err
	}
	defer node.Close()
	rows, err := s.Problem.Open(ctx)
	if err != nil {
		return crew.Usage(err)
	}
	group, err := w.Form(crew.JoinTimeout)
	if err != nil {
		return err
	}
	w.Begin()
	r := &trialRank{
		ScalingRun: f, training: s, group: group, events: w.Events, pulse: w.Pulse, stop: w.Stop().Done(),
		memory: w.Shared, local: w.Place.Local, shared: node.SharesMemory(),
	}
	if err := r.run(ctx, rows); err != nil {
		crew.TellLost(w.Events, group.Rank(), err)
		return err
	}
	return nil
}

// A trialRank is one rank of one trial. It trains as "ringtrain train" does, but may
// emulate the compute.
type trialRank struct {
	*ScalingRun
	training *job.Training
	group    *collective.Group
	events   event.Sink
	pulse    *crew.Pulse           // may be nil
	stop     <-chan struct{}       // closed when this rank is asked to stop
	memory   func(n int) []float32 // for gradients; nil: the heap
	local    int                   // among the ranks of this machine
	shared   bool                  // this rank shares memory with the others of its host

	before collective.Traffic // of the training
	times  stepTimes
	params int
}

// run trains and reports. If this rank alone fails, the other ranks get an error that
// names it.
func (r *trialRank) run(ctx context.Context, rows catalog.Rows) error {
	err := r.train(ctx, rows)
	stopped := errors.Is(err, trainer.ErrStopped)
	if err == nil || stopped {
		// Other ranks may not have received this rank's last message yet.
		if err := r.group.Barrier(ctx); err != nil {
			return err
		}
	}
	if stopped && r.local == 0 {
		r.events.Emit(&event.Stopped{})
	}
	var lost *collective.RankError
	if err != nil && !errors.As(err, &lost) && !trainer.Unanimous(err) {
		r.group.Abort(err)
	}
	return err
}

func (r *trialRank) train(ctx context.Context, rows catalog.Rows) error {
	backend := cpu.New(cpu.Options{Shared: r.memory})
	defer backend.Close()
	c, err := r.training.Assemble(ctx, r.group, rows, backend)
	if err != nil {
		return err
	}
	c.Stop = r.stop
	if r.Compute.Took > 0 {
		c.Task = Emulate(ctx, c.Task, backend, r.Compute.Took)
	}
	if !r.Evaluate {
		c.Task = unevaluated{c.Task}
	}
	c.Alike = append(c.Alike, trainer.Setting{Name: "--compute", Value: r.Compute.Flag})
	c.Observer = r.pulse.With(&r.times)
	r.params = c.Task.Params().Count()
	if err := r.begin(ctx); err != nil {
		return err
	}
	before, counted := machine.ProcessorTimes()
	r.times.last = time.Now()
	r.pulse.Begin(false)
	result, err := trainer.Train(ctx, c)
	if err != nil {
		return err
	}
	busy := -1.
	if after, ok := machine.ProcessorTimes(); ok && counted {
		busy = after.BusySince(before)
	}
	return r.report(ctx, result, busy)
}

// unevaluated is a Task without test rows.
type unevaluated struct{ trainer.Task }

// Score counts nothing.
func (unevaluated) Score(*nn.Pass, nn.Counts) error { return nil }

// begin waits until the launcher has read its counters, then for all ranks.
func (r *trialRank) begin(ctx context.Context) error {
	if r.group.Rank() == 0 {
		r.events.Emit(&TrialBegins{})
		timer := time.NewTimer(countTime)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r.before = r.group.Traffic()
	r.times.sent = r.sent
	return r.group.Barrier(ctx)
}

// sent returns the bytes that this rank has sent since the training began.
func (r *trialRank) sent() int64 { return r.group.Traffic().Minus(r.before).Bytes() }

// Indices of the figures that each rank reports.
const (
	reportElapsed = iota
	reportCompute
	reportUpdate
	reportEvaluation
	reportStepSent
	reportSent
	reportLocal
	reportShared
	reportLen
)

// report gathers the measurements of all ranks, and rank 0 emits them as an event.
func (r *trialRank) report(ctx context.Context, result trainer.Result, busy float64) error {
	// The rank that waited least did not wait for others: its time is the exchange itself.
	least := slices.Clone(r.times.exchange)
	if err := collective.AllReduce(ctx, r.group, least, collective.Min); err != nil {
		return err
	}
	sent := r.sent()
	mine := make([]float64, reportLen)
	mine[reportElapsed] = result.Elapsed.Seconds()
	mine[reportCompute], mine[reportUpdate], mine[reportEvaluation] = r.times.compute, r.times.update, r.times.evaluation
	mine[reportStepSent], mine[reportSent], mine[reportLocal] = r.times.sentEachStep(), float64(sent), float64(r.local)
	if r.shared {
		mine[reportShared] = 1
	}
	all := make([]float64, reportLen*r.group.Size())
	if err := collective.AllGather(ctx, r.group, all, mine); err != nil {
		return err
	}
	if r.group.Rank() > 0 {
		return nil
	}
	e := &TrialMeasured{Params: r.params, Trial: summarizeTrial(all, least, result.Steps)}
	var shared []bool
	for rank := range r.group.Size() {
		e.Locals = append(e.Locals, int(all[rank*reportLen+reportLocal]))
		shared = append(shared, all[rank*reportLen+reportShared] == 1)
	}
	e.Trial.Busy = busy
	e.Trial.Links = Links(r.group.Size(), linkKind(r.group.View(), shared))
	r.events.Emit(e)
	return nil
}

// summarizeTrial summarizes the times of all ranks. least holds the shortest exchange
// of each step.
func summarizeTrial(all, least []float64, steps int) Trial {
	size := len(all) / reportLen
	t := Trial{Workers: size, Steps: steps}
	each := 1000 / float64(max(steps, 1)) // seconds of all steps to milliseconds per step
	var stepSent float64
	for rank := range size {
		figures := all[rank*reportLen : (rank+1)*reportLen]
		t.Seconds = max(t.Seconds, figures[reportElapsed])
		t.Compute += figures[reportCompute] / float64(size) * each
		t.Optimizer += figures[reportUpdate] / float64(size) * each
		t.Evaluation += figures[reportEvaluation] / float64(size) * each
		t.Sent = append(t.Sent, int64(figures[reportSent]))
		stepSent = max(stepSent, figures[reportStepSent])
	}
	t.StepSent = int64(stepSent)
	for _, x := range least {
		t.Exchange += x * each
	}
	t.Idle = max(0, t.Seconds*each-t.Compute-t.Exchange-t.Optimizer-t.Evaluation)
	return t
}

// linkKind names what connects two ranks. shared says for each rank whether it shares
// memory with the others of its host.
func linkKind(v collective.View, shared []bool) func(a, b int) string {
	return func(a, b int) string {
		if v.Members[a].Host == v.Members[b].Host && shared[a] && shared[b] {
			return cluster.TransportSHM
		}
		return cluster.TransportTCP
	}
}

// stepTimes is an Observer that adds up the times of a training, in seconds.
type stepTimes struct {
	sent func() int64 // bytes so far

	compute, update, evaluation float64
	exchange                    []float64 // of each step
	first, now                  int64     // bytes sent after the first step, and after the last
	last                        time.Time // of a step or an evaluation
}

// Stepped implements trainer.Observer.
func (t *stepTimes) Stepped(e trainer.StepEvent) {
	t.compute += e.Compute.Seconds()
	t.update += e.Update.Seconds()
	t.exchange = append(t.exchange, e.Exchange.Seconds())
	t.now = t.sent()
	if len(t.exchange) == 1 {
		t.first = t.now
	}
	t.last = time.Now()
}

// Evaluated implements trainer.Observer.
func (t *stepTimes) Evaluated(trainer.EvalEvent) {
	now := time.Now()
	t.evaluation += now.Sub(t.last).Seconds()
	t.last = now
}

// sentEachStep returns the bytes that this rank sent per step. It leaves out the first
// step, before which the ranks exchange weights.
func (t *stepTimes) sentEachStep() float64 {
	if len(t.exchange) < 2 {
		return float64(t.now)
	}
	return float64(t.now-t.first) / float64(len(t.exchange)-1)
}
