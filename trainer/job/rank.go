package job

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/query"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A rank is the training of one worker, in its own process or in a goroutine.
type rank struct {
	training  *Training
	group     *collective.Group // of the workers
	rows      catalog.Rows
	events    event.Sink // receives the leader's events
	leader    bool       // emits events and writes files for all ranks of its machine
	taps      *taps      // may be nil
	stop      <-chan struct{}
	secured   bool                  // traffic is encrypted
	gpu       *device.GPU           // nil: on the CPU
	gradients func(n int) []float32 // allocates their memory; nil: Go's heap
	finished  func()                // called when the work is done and others may leave; may be nil

	locked bool            // this process or its launcher holds the locks of the output directories
	quit   <-chan struct{} // closed to give up retries; may be nil
	pulse  *crew.Pulse     // receives progress; may be nil

	combining
	task  trainer.Task
	files checkpoint.Writer
	final *finalWriter // nil without --out
	idle  bool         // the checkpoint already had all steps
	blas  string
}

// combining is how a rank combines its gradients with those of others.
type combining struct {
	served    *collective.Group // of the workers and the servers after them; nil without servers
	strategy  trainer.Strategy
	worker    *crew.Worker   // answers requests to switch the strategy; nil in process
	partners  *crew.Partners // forms the next served after the loss of a server; nil if that ends the job
	survivors *survivors     // form the next served after the loss of a worker; nil if that ends the job
	plan      string
	switches  []trainer.Switched // made so far
}

// run trains. If only this rank fails, the others get an error that names it.
func (r *rank) run(ctx context.Context) error {
	result, err := r.train(ctx)
	if r.finished != nil {
		r.finished()
	}
	var told *crew.ToldError
	if err == nil || errors.As(err, &told) { // then every rank knows of the failure
		err = cmp.Or(err, meet(ctx, r))
	}
	if err == nil || told != nil { // or servers would blame a worker that leaves
		err = cmp.Or(err, endServers(ctx, r))
	}
	if err != nil {
		var lost *collective.RankError
		if !errors.As(err, &lost) && told == nil && !trainer.Unanimous(err) {
			abort(r, err)
		}
		return err
	}
	if r.leader {
		if stale := Stale(r.strategy); stale != nil {
			r.events.Emit(stale)
		}
		r.events.Emit(result)
	}
	if _, stopped := result.(*event.Stopped); stopped {
		return trainer.ErrStopped
	}
	return nil
}

// train trains, saves the weights, and returns the last event of this rank.
func (r *rank) train(ctx context.Context) (last event.Event, err error) {
	if r.leader {
		view := event.NewView(r.group.View())
		view.Device = r.training.Placement.String()
		if r.partners != nil {
			view.Job = query.JobName(r.served.View().Job) // that members and status show
		}
		r.events.Emit(view)
	}
	if r.gpu != nil {
		r.blas = r.training.multiplier()
		ctx, end := r.gpu.WhileWhole(ctx)
		defer end()
		err = r.gpu.Do(ctx, func() (err error) {
			defer r.gpu.Forget()
			last, err = r.trainOn(ctx, r.gpu.Backend())
			return err
		})
		return last, err
	}
	backend := cpu.New(cpu.Options{Shared: r.gradients})
	defer backend.Close()
	r.blas = backend.BLAS()
	return r.trainOn(ctx, backend)
}

// trainOn is train on a backend. The caller is on the thread that the backend needs.
func (r *rank) trainOn(ctx context.Context, backend nn.Backend) (last event.Event, err error) {
	if err := r.training.Spec.Order.Apply(ctx, r.group, r.secured, r.events); err != nil {
		return nil, err
	}
	release, err := r.lockDirs(ctx)
	if err != nil {
		return nil, err
	}
	defer release() // after Agree below, so after all machines have written
	c, err := r.assemble(ctx, backend)
	if err != nil {
		return nil, err
	}
	if err := compareResume(ctx, r); err != nil {
		return nil, err
	}
	if err := initialize(r, backend); err != nil {
		return nil, err
	}
	r.plan += r.overlap(&c)
	if err := r.configureSaving(ctx, &c); err != nil {
		return nil, err
	}
	r.pulse.Begin(r.gpu != nil || r.training.Spec.asynchronous())
	result, err := trainer.Train(ctx, c)
	r.pulse.Trained()
	stopped := errors.Is(err, trainer.ErrStopped)
	var unsaved *trainer.SaveError
	if err != nil && !stopped && !(errors.As(err, &unsaved) && unsaved.Last) {
		return nil, err
	}
	if err := disconnect(ctx, r); err != nil {
		return nil, err
	}
	if result.Reached, err = shareReached(ctx, r, result.Reached); err != nil {
		return nil, err
	}
	stopped = stopped && !result.Reached.Found()
	if result.Best, err = r.bestOfAll(ctx, c.Best, result.Best); err != nil {
		return nil, err
	}
	tensors, err := weights(backend, r.task.Params())
	if err != nil {
		return nil, err
	}
	r.idle = result.Steps == c.From.Step
	r.writeWeights(ctx, tensors, result.Steps)
	r.writeBest(ctx, result.Best, r.task.Params(), result.Steps)
	told := tellWait(r)
	err = agree(ctx, r, r.final.err())
	told()
	if err != nil {
		return nil, err
	}
	if stopped {
		return &event.Stopped{Steps: result.Steps}, nil
	}
	tellTarget(r, result.Reached)
	sum, err := checkpoint.Hash(tensors)
	if err != nil {
		return nil, err
	}
	return r.reportBest(&event.Result{
		Metrics: metricsOf(result.Final), Loss: lossOf(result), Steps: result.Steps, Workers: r.group.Size(), Left: leftOf(r),
		Seconds: result.Elapsed.Seconds(), SamplesPerSecond: float64(result.Samples) / max(result.Elapsed.Seconds(), 1e-9), WeightsSHA256: sum,
		BLAS: r.blas, Plan: r.plan + r.switchesPlan(), Compress: r.training.Compression.String(), WireBytes: result.Sent, CompressionRatio: ratio(result.Plain, result.Sent),
		Sparse: r.training.sparse.String(), SparseSteps: result.AsRows,
	}, result.Best), nil
}

// lossOf returns the loss of the last evaluation or, if there was none, of the last step.
func lossOf(r trainer.Result) float64 {
	if r.Final.Step == 0 {
		return r.Loss
	}
	return r.Final.Loss
}

// ratio returns the compression ratio of what was sent, or 1 if nothing was.
func ratio(plain, sent int) float64 {
	if sent == 0 {
		return 1
	}
	return float64(plain) / float64(sent)
}

// Assemble makes the Config of one rank, for callers that use neither Launch nor Work.
// They may change it. g and served are those of WorkersOf.
func (s *Training) Assemble(ctx context.Context, g, served *collective.Group, rows catalog.Rows, backend nn.Backend) (trainer.Config, error) {
	r := &rank{training: s, group: g, combining: combining{served: served}, rows: rows}
	return r.assemble(ctx, backend)
}

// assemble makes the Config of this rank, and sets r.task and r.plan.
func (r *rank) assemble(ctx context.Context, backend nn.Backend) (trainer.Config, error) {
	s, self, size := r.training, r.group.Rank(), r.group.Size()
	recording, err := r.recording(ctx)
	if err != nil {
		return trainer.Config{}, err
	}
	r.task, err = r.rows.Task(catalog.Seat{
		Backend: backend, Rank: self, Size: size, Micro: s.micro, Batch: s.Batch, EvalBatch: s.evalBatch, Seed: s.Spec.Seed, Resident: recording != nil,
		Tests: s.tests,
	})
	if err != nil {
		return trainer.Config{}, err
	}
	r.strategy = r.makeStrategy(ctx, backend)
	c := trainer.Config{
		Groups: trainer.Only(r.group), Backend: backend, Task: r.task, Strategy: r.strategy, Recording: recording,
		Steps: s.Spec.Updates(s.Steps, s.AllWorkers()), Eval: evaluationsOf(s), Seed: s.Spec.Seed, Reduce: s.reduce, Accumulate: s.Spec.Gradients.Faithful, Stop: r.stop,
	}
	r.plan = planOf(r.group, bucketsOf(r, r.gpu != nil || c.Accumulate || c.Reduce != trainer.ReduceMean || s.Spec.inRounds()), s.Compression) + rowsPlan(r)
	r.plan = r.serversPlan(r.plan)
	if r.gpu != nil {
		r.plan = r.gpu.Plan(r.plan)
	}
	c.Alike = s.alike(r.rows, r.blas, r.plan)
	r.plan += s.Spec.roundsPlan() + recordingPlan(recording)
	var emit trainer.Observer
	if r.leader {
		emit = observer{r.events}
	}
	c.Observer = r.pulse.With(r.taps.observers(emit))
	return c, nil
}

// An observer emits the trainer's events as the job's.
type observer struct{ events event.Sink }

func (o observer) Stepped(e trainer.StepEvent) {
	o.events.Emit(&event.Step{
		Step: e.Step, Loss: e.Loss, Samples: e.Weight, Seconds: e.Elapsed.Seconds(),
		ComputeMs: ms(e.Compute), ExchangeMs: ms(e.Exchange), UpdateMs: ms(e.Update), WireBytes: e.Sent, AsRows: e.AsRows,
	})
}

func (o observer) Evaluated(e trainer.EvalEvent) {
	o.events.Emit(&event.Eval{Step: e.Step, Metrics: metricsOf(e), Best: e.Best, Loss: e.Loss, Seconds: e.Elapsed.Seconds()})
}

// metricsOf are the metrics of an evaluation, for events.
func metricsOf(e trainer.EvalEvent) event.Metrics {
	var out event.Metrics
	for _, m := range e.Metrics {
		out = append(out, event.Metric{Name: m.Name, Value: m.Value, Detail: m.Detail, Fraction: m.Fraction})
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
