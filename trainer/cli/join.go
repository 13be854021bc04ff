package cli

import (
	"context"
	"errors"
	"time"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/collective/shm"
	"github.com/ringtrain/ringtrain/trainer"
)

// joinTimeout is how long the members of a job may take to come, by default.
const joinTimeout = 10 * time.Minute

// errEarly is the end of a worker that was asked to stop while it still looked
// for the others. They would wait for it.
var errEarly = errors.New("it was asked to stop before the job had formed")

// An unbegunError is why a job has failed before it began, with nothing lost.
type unbegunError struct{ error }

func (e *unbegunError) Unwrap() error { return e.error }

// form waits until all workers of the job are there, and connects with them.
func (w *worker) form(node *cluster.Node, wait *waiter, timeout time.Duration) (*collective.Group, error) {
	ctx, cancel := context.WithTimeoutCause(w.stop, timeout, errJoinTimeout)
	defer cancel()
	group, err := node.Group(ctx)
	if err != nil {
		return nil, givenUp(err, timeout)
	}
	wait.end()
	w.formed.Store(true)
	w.flights.group.Store(group)
	return group, nil
}

// workerCode is the exit code that a worker's error means. What the workers of a
// job do not have alike is the user's to mend, and the same for all of them.
func workerCode(err error) int {
	var coded *codedError
	var settings *trainer.SettingsError
	var spec *bench.SpecError
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &settings), errors.As(err, &spec),
		errors.Is(err, membership.ErrDiffer), errors.Is(err, membership.ErrKey), errors.Is(err, cluster.ErrInterface), errors.Is(err, shm.ErrNotShared):
		return exitUsage
	}
	return exitFailed
}
