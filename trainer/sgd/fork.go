package sgd

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
)

// A ReplicaError says which replica failed.
type ReplicaError struct {
	What           string // what it did, such as "step 3"
	Worker, Device int
	Err            error
}

// Error names what was done, the replica and the cause.
func (e *ReplicaError) Error() string {
	return fmt.Sprintf("sgd: %s: worker %d, device %d: %v", e.What, e.Worker, e.Device, e.Err)
}

// Unwrap returns the cause.
func (e *ReplicaError) Unwrap() error { return e.Err }

// fork runs fn for all replicas of this process at the same time, and waits for them. It
// returns the error of the replica that failed, not of those that noticed.
func (s *SGD) fork(what string, fn func(*Replica) error) error {
	errs := make([]error, len(s.replicas))
	var all sync.WaitGroup
	for i, r := range s.replicas {
		all.Go(func() { errs[i] = fn(r) })
	}
	all.Wait()
	var noticed error
	for i, err := range errs {
		var told *collective.ReportedError
		switch {
		case err == nil:
		case errors.As(err, &told) || errors.Is(err, context.Canceled):
			noticed = s.named(what, s.replicas[i], err)
		default:
			return s.named(what, s.replicas[i], err)
		}
	}
	return noticed
}

// named adds the culprit to an error that r returned.
func (s *SGD) named(what string, r *Replica, err error) error {
	if trainer.Unanimous(err) {
		return fmt.Errorf("sgd: %s: %w", what, err) // it names the ranks
	}
	culprit := r.rank
	var lost *collective.RankError
	if errors.As(err, &lost) {
		culprit = lost.Rank
	}
	return &ReplicaError{What: what, Worker: culprit / s.options.Devices, Device: culprit % s.options.Devices, Err: err}
}

// together runs fn for all replicas, in which all replicas of all processes make the same
// calls of their groups. An error breaks the SGD, in all processes.
func (s *SGD) together(ctx context.Context, what string, fn func(*Replica) error) error {
	if s.broken != nil {
		return s.broken
	}
	s.broken = s.fork(what, func(r *Replica) error {
		err := r.Backend.Do(ctx, func() error { return fn(r) })
		var lost *collective.RankError
		if err != nil && !errors.As(err, &lost) && !trainer.Unanimous(err) {
			r.group.Abort(err) // so that the others do not wait
		}
		return err
	})
	return s.broken
}
