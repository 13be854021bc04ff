package trainer

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/nn"
)

// A Saver stores snapshots of a run, for example in files. Train calls it on
// rank 0 only, between steps, while the other ranks wait.
type Saver interface {
	Save(ctx context.Context, s Snapshot) error
}

// A Snapshot is the state of a run between two steps. Params is the model's own, and valid
// only during the call. State belongs to the receiver.
type Snapshot struct {
	Step   int // steps done
	Params *nn.Params
	State  State
	Best   Best // so far; its Values are valid only during the call
	Last   bool // training ends here, done or stopped
}

// A CheckpointObserver is an Observer that also receives snapshots, on rank 0.
type CheckpointObserver interface {
	Saved(SaveEvent)
}

// SaveEvent is one call of a Saver.
type SaveEvent struct {
	Step    int // steps done
	Err     error
	Took    time.Duration
	Elapsed time.Duration // since the first step began
}

// A SaveError is returned by Train on rank 0 if the last snapshot of a run
// could not be stored, or, with Config.RequireSave, any snapshot. If it was the last,
// all ranks have ended after the same step, and only rank 0 gets an error; it is
// joined with ErrStopped if the training was stopped.
type SaveError struct {
	Step int // steps done
	Last bool
	Err  error
}

// Error names the step and the reason.
func (e *SaveError) Error() string { return fmt.Sprintf("trainer: saving step %d: %v", e.Step, e.Err) }

// Unwrap returns the Saver's error.
func (e *SaveError) Unwrap() error { return e.Err }

// due reports whether a snapshot is due after this many steps. All ranks agree.
func (l *loop) due(steps int) bool {
	return l.SaveEvery > 0 && steps%l.SaveEvery == 0
}

// saves reports whether a snapshot has become due after more than before steps and at most
// this many.
func (l *loop) saves(before, steps int) bool {
	return l.SaveEvery > 0 && steps/l.SaveEvery > before/l.SaveEvery
}

// save takes a snapshot on rank 0. All ranks call it: each may hold a part of the
// strategy's state.
func (l *loop) save(ctx context.Context, last bool) error {
	steps := l.result.Steps
	wanted := l.Saver != nil && l.place.Rank() == 0 && steps != l.saved
	begin := time.Now()
	state, err := l.Strategy.State(ctx, wanted)
	if !wanted {
		return err
	}
	if err == nil {
		steps = state.Step // an Asynchronous may be further
		err = l.Saver.Save(ctx, Snapshot{Step: steps, Params: l.params, State: state, Best: l.result.Best, Last: last})
	}
	if err == nil {
		l.saved = steps
	}
	if o, ok := l.Observer.(CheckpointObserver); ok {
		o.Saved(SaveEvent{Step: steps, Err: err, Took: time.Since(begin), Elapsed: time.Since(l.begin)})
	}
	if err != nil && (last || l.RequireSave) {
		return &SaveError{Step: steps, Last: last, Err: err}
	}
	return nil
}
