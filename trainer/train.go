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

// ErrStopped is returned by Train when a rank wished to stop: all ranks have
// ended after the same whole step.
var ErrStopped = errors.New("trainer: stopped on request")

// ErrForgets is returned by Train when it is to go on with gradients that were
// never zeroed: their sum is no part of a checkpoint.
var ErrForgets = errors.New("trainer: a training that accumulates gradients over all steps cannot be resumed; begin it anew")

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
	Step    int           // steps done, this one included
	Compute time.Duration // batch, forward and backward; of a recorded step all of it
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

// Config is what Train needs. All ranks have the same but for their rows.
type Config struct {
	Groups   Groups // where the Strategy's group comes from
	Backend  nn.Backend
	Model    nn.Model
	Strategy Strategy
	// Train is where the rows of a step come from, one Batches for each of its
	// micro-batches; most have one. Micro-batch k of rank r stands for rank
	// r*len(Train)+k of a job of Size()*len(Train) ranks and has its rows and its
	// dropout. Its gradients are kept apart, and added in ring order at the end
	// of the step: one rank with n micro-batches makes the bits of n ranks (not
	// with a Compression, nor in device memory). Over several ranks each rank's
	// are added first, and then over ranks.
	Train []Batches
	Test  Shard // nil: no evaluation

	// Alike is what all ranks must have alike; it is compared before anything
	// else. All ranks name the same settings in the same order.
	Alike []Setting

	Steps     int
	EvalEvery int    // evaluate after every EvalEvery steps, and at the end; 0: only at the end
	Seed      uint64 // of dropout
	Reduce    Reduce
	// Accumulate never zeroes gradients: every rank sends the sum of all its
	// gradients so far, and these are summed over ranks. It replays a bug that
	// is easily made with a parameter server and shows what it costs.
	Accumulate bool
	// Recording, unless nil, records whole steps. All ranks have the same Steps.
	Recording *Recording

	Observer Observer        // may be nil
	Stop     <-chan struct{} // closed when this rank wishes to stop; may be nil

	// From is where rank 0 goes on from; the values are in the model already.
	// The others get all of it from there. With as many ranks and micro-batches,
	// and all else alike, the bits are those of a training that never stopped,
	// in the middle of an epoch as well. With another number of them training
	// goes on with the same step, values and optimizer, but not exactly: step s
	// is another place in another epoch's order of rows.
	From State
	// Saver takes snapshots on rank 0: after every SaveEvery steps, 0 for none
	// of these, and at the end or at a stop. It may be nil, as it is on other
	// ranks. Training goes on when it fails, unless RequireSave says otherwise; if
	// the last snapshot fails, Train returns a SaveError.
	Saver       Saver
	SaveEvery   int
	RequireSave bool
}

// Reduce says what the gradients of all rows become.
type Reduce uint8

// The ways to reduce.
const (
	// ReduceMean divides the sum over all rows of all ranks by their number.
	ReduceMean Reduce = iota
	// ReduceSum adds up the means of the micro-batches, so that the step grows
	// with the number of ranks.
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

// Result is what a training came to, the same on every rank but for the time
// and, by some blocks, the bytes.
type Result struct {
	Steps   int // done, those before Config.From included
	Samples int // rows of all ranks, in the steps of this Train
	Loss    float64
	Sent    int // bytes of payload that this rank sent for gradients, in the steps of this Train
	Plain   int // and would have sent without compression
	Final   EvalEvent
	Elapsed time.Duration // of all steps and evaluations
}

// Unanimous reports whether all ranks have come to this error of Train by
// themselves, so that nobody has to be told: they differ, or have stopped.
func Unanimous(err error) bool {
	var settings *SettingsError
	var diverged *DivergedError
	var finite *NotFiniteError
	return errors.As(err, &settings) || errors.As(err, &diverged) || errors.As(err, &finite) || errors.Is(err, ErrStopped) || errors.Is(err, ErrForgets)
}

// Train runs the loop. On all ranks it ends after the same step: at the end,
// with an error that is Unanimous, or with one that names the rank that broke
// it. Any other error, such as a bad batch, is this rank's alone, and the others
// know nothing of it: the caller gives it to Group.Abort.
func Train(ctx context.Context, c Config) (Result, error) {
	if len(c.Train) == 0 {
		return Result{}, errors.New("trainer: there are no rows to train on: Config.Train is empty")
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

// settings are those of Config that ranks must have alike.
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
