package bench

import (
	"cmp"
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
	spec := f.training(f.Config, f.System, 0)
	spec.Workers = max(w.Place.LocalSize, 1) - spec.ServerProcesses()
	s, err := spec.Settle()
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
	r := &trialRank{
		ScalingRun: f, training: s, events: w.Events, pulse: w.Pulse, stop: w.Stop().Done(),
		memory: w.Shared, local: w.Place.Local,
	}
	work := r.serve
	if w.Place.Role == collective.Worker {
		if r.rows, err = s.Problem.Open(ctx); err != nil {
			return crew.Usage(err)
		}
		work = r.run
	}
	if r.all, err = w.Form(crew.JoinTimeout); err != nil {
		return err
	}
	r.shared = node.SharesMemory()
	w.Begin()
	if err := work(ctx); err != nil {
		crew.TellLost(w.Events, r.all.Rank(), err)
		return err
	}
	return nil
}

// A trialRank is one rank of one trial. It trains as "ringtrain train" does, but may
// emulate the compute.
type trialRank struct {
	*ScalingRun
	training *job.Training
	rows     catalog.Rows      // nil in a server
	all      *collective.Group // of the workers and the servers
	group    *collective.Group // of the workers, set by run
	events   event.Sink
	pulse    *crew.Pulse           // may be nil
	stop     <-chan struct{}       // closed when this rank is asked to stop
	memory   func(n int) []float32 // for gradients; nil: the heap
	local    int                   // among the ranks of this machine
	shared   bool                  // this rank shares memory with the others of its host

	before int64 // bytes sent before the training
	times  stepTimes
	params *nn.Params

	busy, peak float64 // of the machine's processors, see machine.LoadMeter; on rank 0
}

// run trains and reports. If this rank alone fails, the other ranks get an error that
// names it.
func (r *trialRank) run(ctx context.Context) error {
	group, served, err := job.WorkersOf(ctx, r.all)
	if err != nil {
		return err
	}
	defer group.Close()
	r.group = group
	err = r.train(ctx, served)
	stopped := errors.Is(err, trainer.ErrStopped)
	if err == nil || stopped {
		// Other ranks may not have received this rank's last message yet.
		if err := r.all.Barrier(ctx); err != nil {
			return err
		}
	}
	if stopped && r.local == 0 {
		r.events.Emit(&event.Stopped{})
	}
	var lost *collective.RankError
	if err != nil && !errors.As(err, &lost) && !trainer.Unanimous(err) {
		r.all.Abort(err)
	}
	return err
}

// serve is run of a server.
func (r *trialRank) serve(ctx context.Context) error {
	if err := job.Serve(ctx, r.training, r.all); err != nil {
		return err
	}
	if _, err := r.gather(ctx, make([]float64, reportLen)); err != nil {
		return err
	}
	return r.all.Barrier(ctx)
}

func (r *trialRank) train(ctx context.Context, served *collective.Group) error {
	backend := cpu.New(cpu.Options{Shared: r.memory})
	defer backend.Close()
	c, err := r.training.Assemble(ctx, r.group, served, r.rows, backend)
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
	r.params = c.Task.Params()
	if err := r.begin(ctx); err != nil {
		return err
	}
	var load *machine.LoadMeter // on the rank that reports
	if r.all.Rank() == 0 {
		load = machine.StartLoadMeter()
	}
	r.times.last = time.Now()
	r.pulse.Begin(false)
	result, err := trainer.Train(ctx, c)
	if load != nil {
		r.busy, r.peak = load.Stop()
	}
	stopped := errors.Is(err, trainer.ErrStopped)
	if err != nil && !stopped {
		return err
	}
	if ended := job.Disconnect(ctx, c.Strategy); ended != nil {
		return ended
	}
	if ended := job.EndServers(ctx, r.group, served); ended != nil {
		return ended
	}
	return cmp.Or(r.report(ctx, result, job.Stale(c.Strategy), stopped), err)
}

// lockstep reports whether all workers make the same steps.
func (r *trialRank) lockstep() bool { return systemOf(r.System).lockstep() }

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
	r.before = r.sent()
	if r.lockstep() {
		r.times.sent = r.sent
	}
	return r.group.Barrier(ctx)
}

// sent returns the bytes that this rank has sent since the training began.
func (r *trialRank) sent() int64 {
	sent := r.all.Traffic().Bytes() - r.before
	if r.group != nil && r.group != r.all {
		sent += r.group.Traffic().Bytes()
	}
	return sent
}

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

// report gathers the measurements of all ranks. Rank 0 emits them as an event, unless the
// training was stopped. stale is nil if all workers made the same steps.
func (r *trialRank) report(ctx context.Context, result trainer.Result, stale *event.Staleness, stopped bool) error {
	// The rank that waited least did not wait for others: its time is the exchange itself.
	least := slices.Clone(r.times.exchange)
	if !r.lockstep() { // ranks may make different numbers of steps
		least = []float64{sum(r.times.exchange)}
	}
	if err := collective.AllReduce(ctx, r.group, least, collective.Min); err != nil {
		return err
	}
	mine := make([]float64, reportLen)
	mine[reportElapsed] = result.Elapsed.Seconds()
	mine[reportCompute], mine[reportUpdate], mine[reportEvaluation] = r.times.compute, r.times.update, r.times.evaluation
	mine[reportStepSent] = r.times.sentEachStep()
	if !r.lockstep() {
		mine[reportStepSent] = float64(r.sent()) / float64(r.training.Steps)
	}
	all, err := r.gather(ctx, mine)
	if err != nil || stopped || r.all.Rank() > 0 {
		return err
	}
	e := &TrialMeasured{Params: r.params.Count(), Lens: lengthsOf(r.params), Trial: summarizeTrial(all, r.group.Size(), least, r.training.Steps)}
	var shared []bool
	for rank := range r.all.Size() {
		e.Locals = append(e.Locals, int(all[rank*reportLen+reportLocal]))
		shared = append(shared, all[rank*reportLen+reportShared] == 1)
	}
	if stale != nil {
		e.Trial.Used = 100 - stale.Discarded
	}
	e.Trial.Busy, e.Trial.Peak = r.busy, r.peak
	e.Trial.Links = Links(r.all.Size(), linkKind(r.all.View(), shared))
	r.events.Emit(e)
	return nil
}

func sum(seconds []float64) (total float64) {
	for _, x := range seconds {
		total += x
	}
	return total
}

// lengthsOf returns the number of elements of each parameter.
func lengthsOf(p *nn.Params) []int {
	var lens []int
	for _, q := range p.List {
		lens = append(lens, q.Values.Len())
	}
	return lens
}

// gather completes the measurements of this rank, and returns those of all ranks.
func (r *trialRank) gather(ctx context.Context, mine []float64) ([]float64, error) {
	mine[reportSent], mine[reportLocal] = float64(r.sent()), float64(r.local)
	if r.shared {
		mine[reportShared] = 1
	}
	all := make([]float64, reportLen*r.all.Size())
	return all, collective.AllGather(ctx, r.all, all, mine)
}

// summarizeTrial summarizes the measurements of all ranks, workers before servers. least
// holds the shortest exchange of each step. A server sends almost everything in steps.
func summarizeTrial(all []float64, workers int, least []float64, steps int) Trial {
	ranks := len(all) / reportLen
	t := Trial{Workers: workers, Servers: ranks - workers, Steps: steps}
	each := 1000 / float64(max(steps, 1)) // seconds of all steps to milliseconds per step
	var stepSent float64
	for rank := range ranks {
		figures := all[rank*reportLen : (rank+1)*reportLen]
		t.Seconds = max(t.Seconds, figures[reportElapsed])
		t.Compute += figures[reportCompute] / float64(workers) * each
		t.Optimizer += figures[reportUpdate] / float64(workers) * each
		t.Evaluation += figures[reportEvaluation] / float64(workers) * each
		t.Sent = append(t.Sent, int64(figures[reportSent]))
		if rank >= workers {
			figures[reportStepSent] = figures[reportSent] / float64(max(steps, 1))
		}
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

// stepTimes is an Observer that adds up the times of a run, in seconds.
type stepTimes struct {
	sent func() int64 // bytes so far; nil if this is not known before the end

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
	if t.sent != nil {
		t.now = t.sent()
	}
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
