package trainertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// A training describes a call of trainer.Train on every rank. The last step of an epoch
// has a single row, so all ranks but one have none.
type training struct {
	micro     int // micro-batches per rank
	batch     int // rows per micro-batch
	recording *trainer.Recording
	stop      int // steps after which the last rank asks to stop; 0: never
	fails     int // steps after which the last rank's batch fails; 0: never
}

const (
	steps       = 9
	stepsOfPass = 3 // steps per epoch
	testRows    = 31
)

// An outcome is the result of a run on one rank.
type outcome struct {
	result trainer.Result
	err    error
	values []float32
	steps  []trainer.StepEvent
	stop   chan struct{} // closed after step when, and then nil; may be nil
	when   int
}

// Stepped implements trainer.Observer.
func (o *outcome) Stepped(e trainer.StepEvent) {
	o.steps = append(o.steps, e)
	if o.stop != nil && e.Step >= o.when {
		close(o.stop)
		o.stop = nil
	}
}

// Evaluated implements trainer.Observer.
func (o *outcome) Evaluated(trainer.EvalEvent) {}

// train calls Train on every rank and returns the outcome on each rank.
func (h *harness) train(size int, x training) ([]*outcome, error) {
	out := make([]*outcome, size)
	rows := (stepsOfPass-1)*size*x.micro*x.batch + 1
	train, test := data.Generate(data.DigitsOptions{Train: rows, Test: testRows, Side: side})
	err := h.ranks(size, func(ctx context.Context, r *rank) error {
		i := r.group.Rank()
		o := &outcome{}
		out[i] = o
		task := &trainer.ModelTask[nn.Batch]{Model: r.model, Test: data.NewPart(test.Stage(8, r.backend), test.Rows, i, size, 8)}
		c := trainer.Config{
			Groups: trainer.Only(r.group), Backend: r.backend, Task: task, Strategy: r.strategy, Observer: o, Recording: x.recording,
			Steps: steps, Eval: trainer.Evaluations{Every: 4}, Seed: 3,
		}
		for k := range x.micro {
			sampler, err := data.NewSampler(rows, x.batch, i*x.micro+k, size*x.micro, 1)
			if err != nil {
				return err
			}
			if x.recording != nil {
				recording := *x.recording
				recording.Summer = hostSummer{r.group}
				c.Recording = &recording
				c.Task = trainer.NewResident(task, train.Resident(x.batch, sampler, r.backend.(nn.Pacer)))
				continue
			}
			task.Train = append(task.Train, data.NewFeed(train.Stage(x.batch, r.backend), sampler))
		}
		if i == size-1 {
			if x.stop > 0 {
				o.stop, o.when = make(chan struct{}), x.stop
				c.Stop = o.stop
			}
			if x.fails > 0 {
				at := x.fails
				if h.Asynchronous { // it may see no other step
					at = 0
				}
				task.Train[0] = failing{task.Train[0], at}
			}
		}
		if x.stop > 0 {
			c.Steps = 1000
			if h.Asynchronous { // the others may make many before this rank makes one
				c.Steps = 1_000_000
			}
		}
		if h.Change != nil {
			h.Change(&c)
		}
		r.doing.Store("Train")
		o.result, o.err = trainer.Train(ctx, c)
		o.values = r.values()
		if o.err != nil && !trainer.Unanimous(o.err) {
			r.group.Abort(o.err) // as Train's caller must
		}
		return nil
	})
	return out, err
}

// failing are Batches without a batch from one step on.
type failing struct {
	trainer.Batches[nn.Batch]
	at int
}

func (f failing) Batch(step int) (nn.Batch, error) {
	if step >= f.at {
		return nn.Batch{}, errCulprit
	}
	return f.Batches.Batch(step)
}

// hostSummer is a GradientSummer whose sums are complete when the call returns.
type hostSummer struct{ *collective.Group }

func (s hostSummer) Sum(grads nn.Buffer) error {
	return s.AllReduce(context.Background(), trainer.Operand(grads), collective.Sum)
}

func (hostSummer) Join() error { return nil }

func (hostSummer) Wait(context.Context) error { return nil }

// checkTrain trains: to the end, until a rank asks to stop, and until
// one fails.
func checkTrain(h *harness, size int) error {
	for name, part := range map[string]struct {
		training
		check func(o *outcome, rank int) error
	}{
		"to the end":       {training{micro: 1, batch: 4}, h.trained},
		"in micro-batches": {training{micro: 2, batch: 4}, h.trained},
		"a rank asks to stop": {training{micro: 1, batch: 4, stop: 5}, func(o *outcome, rank int) error {
			if !errors.Is(o.err, trainer.ErrStopped) && (h.Lockstep || rank == size-1) {
				return fmt.Errorf("the last rank asks to stop, but Train returns %v", o.err)
			}
			want := 6
			for !h.agree(want - 1) {
				want++
			}
			if o.result.Steps != want && h.Lockstep {
				return fmt.Errorf("the last rank asks to stop after step 5, but Train stops after step %d, not %d", o.result.Steps, want)
			}
			return nil
		}},
		"a rank fails": {training{micro: 1, batch: 4, fails: 5}, func(o *outcome, rank int) error {
			if rank == size-1 {
				if !errors.Is(o.err, errCulprit) {
					return fmt.Errorf("it fails, but Train returns %v", o.err)
				}
				return nil
			}
			if !h.Lockstep {
				return nil
			}
			if o.result.Steps < 4/h.every()*h.every() || o.result.Steps > 5 {
				return fmt.Errorf("it has made %d steps, but the rank that fails has made 5", o.result.Steps)
			}
			return names(o.err, size-1)
		}},
	} {
		out, err := h.train(size, part.training)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for i, o := range out {
			if err := part.check(o, i); err != nil {
				return fmt.Errorf("%s: rank %d: %w", name, i, err)
			}
			if !h.Equal || part.fails > 0 {
				continue
			}
			if err := sameBits(out[0].values, o.values); err != nil {
				return fmt.Errorf("%s: ranks 0 and %d end with different values: %w", name, i, err)
			}
		}
	}
	return nil
}

// trained checks the outcome of a run that was not stopped.
func (h *harness) trained(o *outcome, _ int) error {
	if o.err != nil {
		return o.err
	}
	if o.result.Steps != steps && h.Lockstep {
		return fmt.Errorf("it has made %d steps instead of %d", o.result.Steps, steps)
	}
	if rows := o.result.Final.Counts[nn.CountRows]; rows != testRows && h.Lockstep {
		return fmt.Errorf("the evaluation counts %v rows instead of %d", rows, testRows)
	}
	return nil
}

// checkMicroBatches compares n ranks with one rank that has n micro-batches.
func checkMicroBatches(h *harness, size int) error {
	if !h.MicroBatches || size == 1 {
		return nil
	}
	many, err := h.train(size, training{micro: 1, batch: 4})
	if err != nil {
		return err
	}
	one, err := h.train(1, training{micro: size, batch: 4})
	if err != nil {
		return err
	}
	for i, o := range many {
		if err := sameTraining(one[0], o); err != nil {
			return fmt.Errorf("rank %d and one rank with %d micro-batches: %w", i, size, err)
		}
	}
	return nil
}

// sameTraining compares values, and the rows and losses of all steps.
func sameTraining(want, got *outcome) error {
	if err := errors.Join(want.err, got.err); err != nil {
		return err
	}
	if len(want.steps) != len(got.steps) {
		return fmt.Errorf("want %d steps, got %d", len(want.steps), len(got.steps))
	}
	for i, w := range want.steps {
		g := got.steps[i]
		if w.Weight != g.Weight || w.Loss != g.Loss {
			return fmt.Errorf("step %d: want a loss of %v over %d rows, got %v over %d", i, w.Loss, w.Weight, g.Loss, g.Weight)
		}
	}
	return sameBits(want.values, got.values)
}

// checkRecord compares recorded steps with steps that are not.
func checkRecord(h *harness, size int) error {
	if !h.Records {
		return nil
	}
	want, err := h.train(size, training{micro: 1, batch: 4})
	if err != nil {
		return err
	}
	for _, x := range []trainer.Recording{{Steps: 1}, {Steps: 2}, {Steps: 2, Apart: true}} {
		got, err := h.train(size, training{micro: 1, batch: 4, recording: &x})
		if err != nil {
			return fmt.Errorf("recorded, %v: %w", &x, err)
		}
		for i := range got {
			if err := sameTraining(want[i], got[i]); err != nil {
				return fmt.Errorf("rank %d, recorded, %v: %w", i, &x, err)
			}
		}
	}
	return nil
}
