package trainer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/nn"
)

// ErrStopped is returned by Train after a rank asked to stop. All ranks have ended
// after the same step.
var ErrStopped = errors.New("trainer: stopped on request")

// ErrForgets is returned by Train if it should resume with Config.Accumulate: a
// checkpoint does not contain the sum of all earlier gradients.
var ErrForgets = errors.New("trainer: a training that accumulates gradients over all steps cannot be resumed; start it again from step 0")

// Batches provides training rows.
type Batches interface {
	// Batch returns this rank's rows of a step; there may be none. Local row i is row
	// rank + i*size of all ranks' rows of the step. The batch is valid until the next
	// call.
	Batch(step int) (nn.Batch, error)
}

// Shard provides this rank's share of the rows of an evaluation. Over all ranks
// each row appears once. A batch is valid until the next one.
type Shard interface {
	All() iter.Seq2[nn.Batch, error]
}

// An Observer receives the progress of a training, on every rank, in Train's
// goroutine.
type Observer interface {
	Stepped(StepEvent)
	Evaluated(EvalEvent)
}

// StepEvent is one step.
type StepEvent struct {
	Report
	Step    int           // steps done, this one included
	Compute time.Duration // batch, forward and backward; for a recorded step, the whole step
	Elapsed time.Duration // since the first step began
}

// EvalEvent is one evaluation, over the rows of all ranks.
type EvalEvent struct {
	Step     int       // steps done before it
	Counts   nn.Counts // summed over ranks
	Accuracy float64   // correct / rows
	Loss     float64   // mean
	Elapsed  time.Duration
}

// Config is what Train needs. It is the same on all ranks but for the rows.
type Config struct {
	Groups   Groups // where the Strategy's group comes from
	Backend  nn.Backend
	Model    nn.Model
	Strategy Strategy
	// Train provides the rows of a step, one Batches per micro-batch. Micro-batch k of
	// rank r has the rows and the dropout of rank r*len(Train)+k in a job of
	// size*len(Train) ranks. The gradients of a rank's micro-batches are added in ring
	// order before they are summed over ranks. So one rank with n micro-batches gets
	// the bits of n ranks, except with a Compression or in device memory.
	Train []Batches
	Test  Shard // nil: no evaluation

	// Alike lists settings that must be the same on all ranks, in the same order. The
	// Strategy compares them before anything else.
	Alike []Setting

	Steps     int
	EvalEvery int    // evaluate after every EvalEvery steps, and at the end; 0: only at the end
	Seed      uint64 // of dropout
	Reduce    Reduce
	// Accumulate never zeroes gradients: every rank sends the sum of all its gradients
	// so far. It reproduces a common bug of parameter servers and shows its cost.
	Accumulate bool
	// Recording, unless nil, records whole steps. Recording.Steps and Apart are the
	// same on all ranks.
	Recording *Recording

	Observer Observer        // may be nil
	Stop     <-chan struct{} // closed when this rank asks to stop; may be nil

	// From is the state that rank 0 resumes from; its model already has the values.
	// The other ranks receive both. With the same number of ranks and micro-batches
	// the bits are those of a training that never stopped, even in the middle of an
	// epoch. With another number, step, values and optimizer carry over, but step s has
	// other rows.
	From State
	// Saver takes snapshots on rank 0: after every SaveEvery steps (0: none of these),
	// and at the end or at a stop. It may be nil, and is on other ranks. If it fails,
	// training continues, unless RequireSave is set; if the last snapshot fails, Train
	// returns a *SaveError.
	Saver       Saver
	SaveEvery   int
	RequireSave bool
}

// Reduce says how the gradients of all rows are combined.
type Reduce uint8

// The ways to reduce.
const (
	// ReduceMean takes the mean over all rows of all ranks.
	ReduceMean Reduce = iota
	// ReduceSum adds the means of all micro-batches, so steps grow with the number of
	// ranks.
	ReduceSum
)

// String is "mean" or "sum".
func (r Reduce) String() string {
	switch r {
	case ReduceMean:
		return "mean"
	case ReduceSum:
		return "sum"
	}
	return fmt.Sprintf("Reduce(%d)", uint8(r))
}

// Result is the outcome of a training. It is the same on every rank except for the
// time and, by a few blocks, the bytes.
type Result struct {
	Steps   int // done, including those before Config.From
	Samples int // rows of all ranks, in the steps of this call
	Loss    float64
	Sent    int // bytes of gradients that this rank sent, in the steps of this call
	Plain   int // bytes that it would have sent without compression
	Final   EvalEvent
	Elapsed time.Duration // of all steps and evaluations
}

// Unanimous reports whether every rank gets this error from Train by itself, so the
// caller need not call Group.Abort: the ranks differ, or have stopped.
func Unanimous(err error) bool {
	var settings *SettingsError
	var diverged *DivergedError
	var finite *NotFiniteError
	return errors.As(err, &settings) || errors.As(err, &diverged) || errors.As(err, &finite) || errors.Is(err, ErrStopped) || errors.Is(err, ErrForgets)
}

// Train runs the loop. It ends after the same step on all ranks: at the end, with an
// error that is Unanimous, or with one that names the rank that failed. Any other
// error, such as a bad batch, is of this rank alone. The caller then passes it to
// Group.Abort, so that the other ranks do not wait.
func Train(ctx context.Context, c Config) (Result, error) {
	if len(c.Train) == 0 {
		return Result{}, errors.New("trainer: no rows to train on: Config.Train is empty")
	}
	if err := c.checkRecording(); err != nil {
		return Result{}, err
	}
	g, err := c.Groups.Group(ctx)
	if err != nil {
		return Result{}, err
	}
	var result Result
	err = c.Backend.Do(ctx, func() error {
		p := c.Model.Params()
		if c.Accumulate || c.Reduce == ReduceSum {
			if err := checkStatistics(p, "summed gradients would spoil it: set Reduce to ReduceMean and do not set Accumulate"); err != nil {
				return err
			}
		}
		place, err := c.Strategy.Start(ctx, Start{Group: g, Params: p, From: c.From, Settings: slices.Concat(c.Alike, c.settings())})
		if err != nil {
			return err
		}
		if place.Step > 0 && c.Accumulate {
			return ErrForgets
		}
		l := &loop{Config: c, params: p, place: place, begin: time.Now(), saved: place.Step, result: Result{Steps: place.Step}}
		err = l.run(ctx)
		l.result.Elapsed = time.Since(l.begin)
		result = l.result
		return err
	})
	return result, err
}

// settings are the fields of Config that must be the same on all ranks.
func (c Config) settings() []Setting {
	return []Setting{
		{Name: "the number of steps", Value: fmt.Sprint(c.Steps)},
		{Name: "the number of micro-batches", Value: fmt.Sprint(len(c.Train))},
		{Name: "the reduction", Value: c.Reduce.String()},
		{Name: "the recording of steps", Value: c.Recording.String()},
		{Name: "the number of steps between evaluations", Value: fmt.Sprint(c.EvalEvery)},
		{Name: "the number of steps between checkpoints", Value: fmt.Sprint(c.SaveEvery)},
	}
}
