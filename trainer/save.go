package trainer

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/nn"
)

// A Saver keeps snapshots of a training, such as in files. Train calls it on
// rank 0 alone, between steps, while the other ranks wait.
type Saver interface {
	Save(ctx context.Context, s Snapshot) error
}

// A Snapshot is a training between two steps. Params is the model's own and
// valid during the call only; State is the receiver's.
type Snapshot struct {
	Step   int // steps done
	Params *nn.Params
	State  State
	Last   bool // training ends here, done or stopped
}

// A CheckpointObserver is an Observer that is told of snapshots, too, on
// rank 0.
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

// A SaveError is returned by Train on rank 0 when a snapshot could not be kept:
// the last of a training, which its result may depend on, or, with
// Config.RequireSave, any. After the last one all ranks have ended after the same
// step, and only rank 0 knows; the error is then joined with ErrStopped if the
// training was stopped.
type SaveError struct {
	Step int // steps done
	Last bool
	Err  error
}

// Error says which step was not kept, and why.
func (e *SaveError) Error() string { return fmt.Sprintf("trainer: saving step %d: %v", e.Step, e.Err) }

// Unwrap is why.
func (e *SaveError) Unwrap() error { return e.Err }

// due reports whether a snapshot is to be taken after so many steps, on all
// ranks alike.
func (l *loop) due(steps int) bool {
	return l.SaveEvery > 0 && steps%l.SaveEvery == 0
}

// save takes a snapshot, on rank 0. All ranks call it, because some may hold a
// part.
func (l *loop) save(ctx context.Context, last bool) error {
	steps := l.result.Steps
	wanted := l.Saver != nil && l.place.Rank() == 0 && steps != l.saved
	begin := time.Now()
	state, err := l.Strategy.State(ctx, wanted)
	if !wanted {
		return err
	}
	if err == nil {
		err = l.Saver.Save(ctx, Snapshot{Step: steps, Params: l.params, State: state, Last: last})
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
