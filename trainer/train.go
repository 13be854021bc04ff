package trainer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// ErrStopped is returned by Train when a rank wished to stop: all ranks have
// ended after the same whole step.
var ErrStopped = errors.New("trainer: stopped on request")

// Batches is where training rows come from.
type Batches interface {
	// Batch is this rank's rows of a step, which may be none. Local row i is row
	// rank + i*size of the step's rows of all ranks. It is valid until the next
	// call.
	Batch(step int) (nn.Batch, error)
}

// Shard is where the rows of an evaluation come from: this rank's share of
// them, each row once over all ranks. A batch is valid until the next.
type Shard interface {
	All() iter.Seq2[nn.Batch, error]
}

// An Observer is told how training goes, on every rank, from Train's
// goroutine.
type Observer interface {
	Stepped(StepEvent)
	Evaluated(EvalEvent)
}

// StepEvent is one step.
type StepEvent struct {
	Report
	Step    int           // counts from 0
	Compute time.Duration // batch, forward and backward
	Elapsed time.Duration // since the first step began
}

// EvalEvent is one evaluation, over the rows of all ranks.
type EvalEvent struct {
	Step     int       // the step after which it was made
	Counts   nn.Counts // summed over ranks
	Accuracy float64   // correct / rows
	Loss     float64   // mean
	Elapsed  time.Duration
}

// Config is what Train needs. All ranks have the same but for their rows.
type Config struct {
	Group    *collective.Group
	Backend  nn.Backend
	Model    nn.Model
	Strategy Strategy
	Train    Batches
	Test     Shard // nil: no evaluation

	// Alike is what all ranks must have alike; it is compared before anything
	// else. All ranks name the same settings in the same order.
	Alike []Setting

	Steps     int
	EvalEvery int    // evaluate after steps 0, EvalEvery, 2*EvalEvery...; 0: only at the end
	Seed      uint64 // of dropout
	// Accumulate never zeroes gradients: every rank sends the sum of all its
	// gradients so far, and these are summed over ranks. It replays a bug that
	// is easily made with a parameter server and shows what it costs.
	Accumulate bool

	Observer Observer        // may be nil
	Stop     <-chan struct{} // closed when this rank wishes to stop; may be nil
}

// Result is what a training came to, the same on every rank but for the time.
type Result struct {
	Steps   int
	Samples int // rows of all ranks
	Loss    float64
	Final   EvalEvent
	Elapsed time.Duration // of all steps and evaluations
}

// Unanimous reports whether all ranks have come to this error of Train by
// themselves, so that nobody has to be told: they differ, or have stopped.
func Unanimous(err error) bool {
	var settings *SettingsError
	var diverged *DivergedError
	var finite *NotFiniteError
	return errors.As(err, &settings) || errors.As(err, &diverged) || errors.As(err, &finite) || errors.Is(err, ErrStopped)
}

// Train runs the loop. On all ranks it ends after the same step: at the end,
// with an error that is Unanimous, or with one that names the rank that broke
// it. Any other error, such as a bad batch, is this rank's alone, and the others
// know nothing of it: the caller gives it to Group.Abort.
func Train(ctx context.Context, c Config) (Result, error) {
	l := &loop{Config: c, params: c.Model.Params()}
	if c.Accumulate {
		l.sum = c.Backend.Alloc(l.params.Grads.Len())
	}
	if err := compareSettings(ctx, c.Group, c.Alike); err != nil {
		return Result{}, err
	}
	if err := c.Strategy.Init(ctx, l.params, State{}); err != nil {
		return Result{}, err
	}
	l.begin = time.Now()
	err := c.Backend.Do(ctx, func() error { return l.run(ctx) })
	l.result.Elapsed = time.Since(l.begin)
	return l.result, err
}

// loop is a Train in progress.
type loop struct {
	Config
	params *nn.Params
	sum    nn.Buffer // of all gradients so far, for Accumulate
	begin  time.Time
	result Result
	tested bool // the values were evaluated as they are
}

func (l *loop) run(ctx context.Context) error {
	stopped := false
	for step := 0; step < l.Steps && !stopped; step++ {
		report, err := l.step(ctx, step)
		if err != nil {
			return err
		}
		stopped = report.Stop
		l.tested = false
		if l.EvalEvery > 0 && step%l.EvalEvery == 0 {
			if err := l.evaluate(ctx, step); err != nil {
				return err
			}
		}
	}
	if !stopped && !l.tested {
		if err := l.evaluate(ctx, max(l.Steps-1, 0)); err != nil {
			return err
		}
	}
	if err := l.compareValues(ctx); err != nil {
		return err
	}
	if stopped {
		return ErrStopped
	}
	return nil
}

// compareValues makes sure at the end that all ranks hold the same model.
func (l *loop) compareValues(ctx context.Context) error {
	values := make([]float32, l.params.Values.Len())
	l.Backend.Read(values, l.params.Values)
	words := make([]int64, l.Group.Size())
	if err := collective.AllGather(ctx, l.Group, words, []int64{hash(values)}); err != nil {
		return fmt.Errorf("trainer: comparing the final values: %w", err)
	}
	if odd := differing(words, func(w int64) int64 { return w }); odd != nil {
		return &DivergedError{What: "final values of the parameters", Ranks: odd, Names: names(l.Group.View(), odd)}
	}
	return nil
}

func (l *loop) step(ctx context.Context, step int) (Report, error) {
	begin := time.Now()
	b, err := l.Train.Batch(step)
	if err != nil {
		return Report{}, fmt.Errorf("trainer: the batch of step %d on rank %d: %w", step, l.Group.Rank(), err)
	}
	l.Backend.Zero(l.params.Grads)
	pass := nn.Pass{Backend: l.Backend, Train: true, Random: nn.Stream{Seed: l.Seed, Step: uint64(step), First: l.Group.Rank(), Stride: l.Group.Size()}}
	loss, weight, err := l.Model.Learn(&pass, b)
	if err != nil {
		return Report{}, fmt.Errorf("trainer: step %d on rank %d: %w", step, l.Group.Rank(), err)
	}
	if l.Accumulate {
		l.accumulate(weight)
	}
	compute := time.Since(begin)
	report, err := l.Strategy.Step(ctx, l.params, Step{Index: step, Weight: weight, Undivided: l.Accumulate, Loss: loss, Stop: l.wishesToStop()})
	if err != nil {
		return report, err
	}
	l.result.Steps, l.result.Loss = step+1, report.Loss
	l.result.Samples += report.Weight
	if l.Observer != nil {
		l.Observer.Stepped(StepEvent{Report: report, Step: step, Compute: compute, Elapsed: time.Since(l.begin)})
	}
	return report, nil
}

// accumulate replaces the gradients by the sum of the means of all batches so
// far.
func (l *loop) accumulate(rows int) {
	l.Backend.Axpy(l.sum, 1/float32(max(rows, 1)), l.params.Grads)
	l.Backend.Zero(l.params.Grads)
	l.Backend.Axpy(l.params.Grads, 1, l.sum)
}

func (l *loop) wishesToStop() bool {
	select {
	case <-l.Stop: // nil is never ready
		return true
	default:
		return false
	}
}

func (l *loop) evaluate(ctx context.Context, step int) error {
	l.tested = true
	if l.Test == nil {
		return nil
	}
	counts, err := Evaluate(ctx, l.Group, l.Backend, l.Model, l.Test)
	if err != nil {
		return fmt.Errorf("trainer: evaluating after step %d: %w", step, err)
	}
	if loss := counts[nn.CountLoss]; math.IsNaN(loss) || math.IsInf(loss, 0) {
		ranks := make([]int, l.Group.Size()) // all of them: they hold the same values
		for r := range ranks {
			ranks[r] = r
		}
		return &NotFiniteError{What: "test loss after", Step: step, Ranks: ranks, Names: names(l.Group.View(), ranks)}
	}
	rows := max(counts[nn.CountRows], 1)
	e := EvalEvent{Step: step, Counts: counts, Accuracy: counts[nn.CountCorrect] / rows, Loss: counts[nn.CountLoss] / rows, Elapsed: time.Since(l.begin)}
	l.result.Final = e
	if l.Observer != nil {
		l.Observer.Evaluated(e)
	}
	return nil
}
