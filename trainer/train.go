package trainer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/nn"
)

// ErrStopped is returned by Train after a rank asked to stop. All ranks have ended
// after the same step. With an Asynchronous, ranks other than 0 also get it if rank 0 has
// reached Config.Eval.Until.
var ErrStopped = errors.New("trainer: stopped on request")

// ErrForgets is returned by Train if it should resume with Config.Accumulate: a
// checkpoint does not contain the sum of all earlier gradients.
var ErrForgets = errors.New("trainer: a run that accumulates gradients over all steps cannot be resumed; start it again from step 0")

// An Observer receives the progress of a run, on every rank, in Train's
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
	Step    int       // steps done before it
	Counts  nn.Counts // summed over ranks
	Loss    float64   // mean
	Metrics []Metric  // of the task
	Best    bool      // it is better than all before it; see Best
	Elapsed time.Duration
}

// Metric returns the value of a metric of the task; 0 if there is none of that name.
func (e EvalEvent) Metric(name string) float64 {
	for _, m := range e.Metrics {
		if m.Name == name {
			return m.Value
		}
	}
	return 0
}

// Config is what Train needs. It is the same on all ranks but for the rows.
type Config struct {
	Groups   Groups // where the Strategy's group comes from
	Backend  nn.Backend
	Strategy Strategy
	// Task is what is trained. Its micro-batch k on rank r has the rows and the dropout of
	// rank r*Micro()+k in a job of size*Micro() ranks. The gradients of a rank's
	// micro-batches are added in ring order before they are summed over ranks. So one rank
	// with n micro-batches gets the bits of n ranks, except with a Compression or in
	// device memory.
	Task Task

	// Alike lists more settings, besides those of the Task, that must be the same on all
	// ranks, in the same order.
	Alike []Setting

	Steps  int // fewer if Eval.Until is reached
	Eval   Evaluations
	Seed   uint64 // of dropout
	Reduce Reduce
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
	// the bits are those of a run that never stopped, even in the middle of an
	// epoch. With another number, step, values and optimizer carry over, but step s has
	// other rows.
	From State
	// Saver takes snapshots on rank 0: after every SaveEvery steps (0: none of these),
	// and at the end or at a stop. It may be nil, and is on other ranks, which set SaveEvery
	// all the same, because they wait. If it fails,
	// training continues, unless RequireSave is set; if the last snapshot fails, Train
	// returns a *SaveError.
	Saver       Saver
	SaveEvery   int
	RequireSave bool

	// Best is the best evaluation before From. It is the same on all ranks.
	Best Best
	// KeepBest copies the values to the host after each evaluation that is the best so far,
	// for Snapshot.Best and Result.Best. Ranks may differ.
	KeepBest bool
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
	// ReduceTotal adds the gradients of all rows, so steps grow with their number, as in
	// libraries that leave it to the loss to divide.
	ReduceTotal
)

// ParseReduce returns the Reduce with a name.
func ParseReduce(name string) (Reduce, error) {
	for r := ReduceMean; r <= ReduceTotal; r++ {
		if r.String() == name {
			return r, nil
		}
	}
	return 0, fmt.Errorf("must be mean, sum or total, not %q", name)
}

// String is "mean", "sum" or "total".
func (r Reduce) String() string {
	switch r {
	case ReduceMean:
		return "mean"
	case ReduceSum:
		return "sum"
	case ReduceTotal:
		return "total"
	}
	return fmt.Sprintf("Reduce(%d)", uint8(r))
}

// Result is the outcome of a run. It is the same on every rank except for the
// time and, by a few blocks, the bytes.
type Result struct {
	Steps   int // done, including those before Config.From
	Samples int // rows of all ranks, in the steps of this call
	Loss    float64
	Sent    int // bytes of gradients that this rank sent, in the steps of this call
	Plain   int // bytes that it would have sent for all of them, without compression
	AsRows  int // steps in which gradients of some tables left as rows
	Final   EvalEvent
	Best    Best
	Reached Reached       // Config.Eval.Until; with an Asynchronous, only rank 0 knows it
	Elapsed time.Duration // of all steps and evaluations
}

// Unanimous reports whether every rank gets this error from Train by itself, so the
// caller need not call Group.Abort: the ranks differ, or have stopped.
func Unanimous(err error) bool {
	var settings *SettingsError
	var diverged *DivergedError
	var finite *NotFiniteError
	var target *TargetError
	return errors.As(err, &target) || errors.As(err, &settings) || errors.As(err, &diverged) || errors.As(err, &finite) || errors.Is(err, ErrStopped) || errors.Is(err, ErrForgets)
}

// Train runs the loop. It ends after the same step on all ranks: at the end, with an
// error that is Unanimous, or with one that names the rank that failed. Any other
// error, such as a bad batch, is of this rank alone. The caller then passes it to
// Group.Abort, so that the other ranks do not wait.
func Train(ctx context.Context, c Config) (Result, error) {
	if err := c.checkParts(); err != nil {
		return Result{}, err
	}
	if err := c.checkTarget(); err != nil {
		return Result{}, err
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
		p := c.Task.Params()
		if c.Accumulate || c.Reduce != ReduceMean {
			if err := checkStatistics(p, "summed gradients would spoil it: set Reduce to ReduceMean and do not set Accumulate"); err != nil {
				return err
			}
		}
		place, err := c.Strategy.Start(ctx, Start{Group: g, Params: p, From: c.From, Steps: c.Steps, Settings: slices.Concat(c.Alike, c.Task.Alike(), c.settings())})
		if err != nil {
			return err
		}
		if place.Step > 0 && c.Accumulate {
			return ErrForgets
		}
		l := &loop{Config: c, params: p, place: place, begin: time.Now(), saved: place.Step, result: Result{Steps: place.Step, Best: c.Best}}
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
		{Name: "the seed", Value: fmt.Sprint(c.Seed)},
		{Name: "the number of micro-batches", Value: fmt.Sprint(c.Task.Micro())},
		{Name: "the reduction", Value: c.Reduce.String()},
		{Name: "the recording of steps", Value: c.Recording.String()},
		{Name: "the number of steps between evaluations", Value: fmt.Sprint(c.Eval.Every)},
		{Name: "the step of the first evaluation", Value: fmt.Sprint(c.Eval.first())},
		{Name: "the target", Value: c.Eval.Until.String()},
		{Name: "the number of steps between checkpoints", Value: fmt.Sprint(c.SaveEvery)},
		c.Best.setting(),
	}
}
