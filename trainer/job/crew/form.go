package crew

import (
	"context"
	"errors"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/collective/shm"
	"github.com/ringtrain/ringtrain/trainer"
)

// JoinTimeout is the default of Place.JoinTimeout.
const JoinTimeout = 10 * time.Minute

// Form waits until all workers of the job have joined, for timeout at most, and
// connects to them. Join comes first.
func (w *Worker) Form(timeout time.Duration) (*collective.Group, error) {
	ctx, cancel := context.WithTimeoutCause(w.stop, timeout, ErrJoinTimeout)
	defer cancel()
	group, err := w.node.Group(ctx)
	if err != nil {
		return nil, joinTimedOut(err, timeout)
	}
	w.wait.end()
	w.formed.Store(true)
	w.flight.group.Store(group)
	return group, nil
}

// isUsage reports whether a worker's error is a mistake for the user to correct. Settings
// that differ between workers are one, for each of them, and so is a target that the task does
// not have.
func isUsage(err error) bool {
	var usage *UsageError
	var settings *trainer.SettingsError
	var target *trainer.TargetError
	return errors.As(err, &usage) || errors.As(err, &target) || errors.As(err, &settings) ||
		errors.Is(err, membership.ErrDiffer) || errors.Is(err, membership.ErrKey) || errors.Is(err, cluster.ErrInterface) || errors.Is(err, shm.ErrNotShared)
}
