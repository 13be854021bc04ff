package job

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// weightsFile is the name of the weights in the directory of --out.
const weightsFile = "model.safetensors"

// A rank is one worker's training, in whatever process it runs.
type rank struct {
	training  *Training
	group     *collective.Group
	set       *data.Set
	events    event.Sink // for what one rank of a machine tells for all
	teller    bool       // this is that rank
	taps      *taps      // nil: nobody else looks on
	stop      <-chan struct{}
	secured   bool                  // what the ranks send is encrypted
	gpu       *device.GPU           // nil: on the CPU
	gradients func(n int) []float32 // makes memory for them; nil is Go's heap
	finished  func()                // called when the work is done and others may leave; may be nil

	held  bool            // this process, or its launcher, has taken the directories to write to
	quit  <-chan struct{} // closed when nobody waits for retries any more; may be nil
	pulse *crew.Pulse     // told of progress; may be nil

	model      nn.Model
	files      checkpoint.Writer
	last       *persister // of what the training leaves behind; nil without --out
	idle       bool       // the checkpoint had all the steps
	blas, plan string
}

// run trains. An error of this rank alone reaches the others as one that names
// it.
func (r *rank) run(ctx context.Context) error {
	result, err := r.train(ctx)
	if r.finished != nil {
		r.finished()
	}
	var told *crew.ToldError
	if err == nil || errors.As(err, &told) {
		// Who has finished must not leave before the others have heard its last
		// message, nor call it a success.
		err = cmp.Or(err, r.group.Barrier(ctx))
	}
	if err != nil {
		var lost *collective.RankError
		if !errors.As(err, &lost) && told == nil && !trainer.Unanimous(err) {
			r.group.Abort(err)
		}
		return err
	}
	if r.teller {
		r.events.Emit(result)
	}
	if _, stopped := result.(*event.Stopped); stopped {
		return trainer.ErrStopped
	}
	return nil
}

// train trains and saves, and returns the last event of this rank.
func (r *rank) train(ctx context.Context) (last event.Event, err error) {
	if r.teller {
		view := event.NewView(r.group.View())
		view.Device = r.training.Placement.String()
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

// trainOn is train on a backend, on the thread that this needs.
func (r *rank) trainOn(ctx context.Context, backend nn.Backend) (last event.Event, err error) {
	if err := r.training.Spec.Order.Apply(ctx, r.group, r.secured, r.events); err != nil {
		return nil, err
	}
	release, err := r.takeDirs(ctx)
	if err != nil {
		return nil, err
	}
	defer release() // when all machines have written what they have
	c, err := r.assemble(ctx, backend)
	if err != nil {
		return nil, err
	}
	if err := r.record(ctx, &c); err != nil {
		return nil, err
	}
	r.plan += r.overlap(&c)
	if err := r.keep(ctx, &c); err != nil {
		return nil, err
	}
	r.pulse.Begin(r.gpu != nil)
	result, err := trainer.Train(ctx, c)
	stopped := errors.Is(err, trainer.ErrStopped)
	var unsaved *trainer.SaveError
	if err != nil && !stopped && !(errors.As(err, &unsaved) && unsaved.Last) {
		return nil, err
	}
	tensors, err := weights(backend, r.model.Params())
	if err != nil {
		return nil, err
	}
	r.idle = result.Steps == c.From.Step
	if err := crew.Agree(ctx, r.group, r.save(ctx, tensors, result.Steps)); err != nil {
		return nil, err
	}
	if stopped {
		return &event.Stopped{Steps: result.Steps}, nil
	}
	sum, err := checkpoint.Hash(tensors)
	if err != nil {
		return nil, err
	}
	return &event.Result{
		Accuracy: result.Final.Accuracy, Loss: result.Final.Loss, Steps: result.Steps, Workers: r.group.Size(),
		Seconds: result.Elapsed.Seconds(), SamplesPerSecond: float64(result.Samples) / max(result.Elapsed.Seconds(), 1e-9), WeightsSHA256: sum,
		BLAS: r.blas, Plan: r.plan, Compress: r.training.compress.String(), WireBytes: result.Sent, CompressionRatio: ratio(result.Plain, result.Sent),
	}, nil
}

// ratio is how many times less was sent than without compression; 1 where
// nothing is.
func ratio(plain, sent int) float64 {
	if sent == 0 {
		return 1
	}
	return float64(plain) / float64(sent)
}

// Assemble makes everything that one rank needs to train, for callers that do without
// Launch and Work. They may change the Config.
func (s *Training) Assemble(ctx context.Context, g *collective.Group, set *data.Set, backend nn.Backend) (trainer.Config, error) {
	r := &rank{training: s, group: g, set: set}
	return r.assemble(ctx, backend)
}

// assemble makes everything that a training needs.
func (r *rank) assemble(ctx context.Context, backend nn.Backend) (trainer.Config, error) {
	s, self, size := r.training, r.group.Rank(), r.group.Size()
	layers, err := s.layers()
	if err != nil {
		return trainer.Config{}, err
	}
	r.model, err = nn.NewClassifier(backend, layers, []int{r.set.Train.Features()}, r.set.Train.Classes, s.Spec.Seed)
	if err != nil {
		return trainer.Config{}, err
	}
	strategy := trainer.NewAllReduce(backend, s.optimizer)
	strategy.SetCompression(s.compress)
	strategy.SetBucket(s.Spec.Gradients.bucket())
	if r.gpu != nil && r.gpu.ByNCCL() {
		strategy.SetSums(r.gpu.Sums(ctx))
	}
	c := trainer.Config{
		Groups: trainer.Only(r.group), Backend: backend, Model: r.model, Strategy: strategy,
		Test:  data.NewPart(r.set.Test, self, size, s.evalBatch, backend),
		Steps: s.Steps, EvalEvery: s.evalEvery, Seed: s.Spec.Seed, Reduce: s.reduce, Accumulate: s.Spec.Faithful, Stop: r.stop,
	}
	for k := range s.micro {
		sampler, err := data.NewSampler(r.set.Train.Rows, s.Batch, self*s.micro+k, size*s.micro, s.Spec.Seed)
		if err != nil {
			return trainer.Config{}, err
		}
		c.Train = append(c.Train, data.NewFeed(r.set.Train, sampler, s.Batch, backend))
	}
	r.plan = planOf(r.group, r.model.Params(), s.Spec.Gradients.bucket(), s.compress, r.gpu != nil || c.Accumulate || c.Reduce == trainer.ReduceSum)
	if r.gpu != nil {
		r.plan = r.gpu.Plan(r.plan)
	}
	c.Alike = s.alike(r.set, r.blas, r.plan)
	var mine trainer.Observer
	if r.teller {
		mine = observer{r.events}
	}
	c.Observer = r.pulse.With(r.taps.train(mine))
	return c, nil
}

// weights is a copy of all parameters.
func weights(b nn.Backend, p *nn.Params) ([]checkpoint.Named, error) {
	arena := make([]float32, p.Values.Len())
	b.Read(arena, p.Values)
	return slotTensors(p, arena), b.Sync(context.Background()) // it ends: a device computes, or has failed
}

// observer turns what the trainer tells into events.
type observer struct{ events event.Sink }

func (o observer) Stepped(e trainer.StepEvent) {
	o.events.Emit(&event.Step{
		Step: e.Step, Loss: e.Loss, Samples: e.Weight, Seconds: e.Elapsed.Seconds(),
		ComputeMs: ms(e.Compute), ExchangeMs: ms(e.Exchange), UpdateMs: ms(e.Update), WireBytes: e.Sent,
	})
}

func (o observer) Evaluated(e trainer.EvalEvent) {
	o.events.Emit(&event.Eval{Step: e.Step, Accuracy: e.Accuracy, Loss: e.Loss, Seconds: e.Elapsed.Seconds()})
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
