//go:build gpu && cgo && linux

package trainer_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// lostAt is the step after which ranks are lost in the tests below.
const lostAt = 13

// valuesAfter returns the values after each step of an undisturbed job on devices.
func valuesAfter(t *testing.T, j job) (after [][]float32) {
	j.change = func(rank int, c *trainer.Config) {
		if rank == 0 {
			c.Observer = observeSteps(func(trainer.StepEvent) { after = append(after, read(c.Backend, c.Task.Params().Values)) })
		}
	}
	for _, o := range j.onDevices(t, nil) {
		require.NoError(t, o.err)
	}
	return after
}

// sameOrNext requires that each rank has the values after a complete step, and that the ranks
// differ by at most one step.
func sameOrNext(t *testing.T, after [][]float32, out []*outcome) {
	t.Helper()
	var steps []int
	for r, o := range out {
		step := slices.IndexFunc(after, func(v []float32) bool { return slices.Equal(v, o.values) })
		require.GreaterOrEqual(t, step, 0, "rank %d: the values must be those after a step", r)
		steps = append(steps, step)
	}
	require.LessOrEqual(t, slices.Max(steps)-slices.Min(steps), 1, "steps of the ranks: %v", steps)
}

// When a rank aborts its communicator, the sums of the others end with garbage, and without an
// error. The hosts of the others wait for the sums, but they do not apply them, even if they have
// not heard of the failure yet. In this test rank 0 hears of it after its sums.
func TestAbortedSums(t *testing.T) {
	j := job{ranks: 2, batch: 16, steps: 40, optimizer: optim.DefaultAdam(), bucket: everyParameter}
	after := valuesAfter(t, j)
	f := newLateFailure()
	close(f.arrived)
	j.hooks = f.hooks()
	j.hooks.summer = func(rank int, s trainer.GradientSummer) trainer.GradientSummer {
		if rank == 1 {
			return s
		}
		return &lateSummer{GradientSummer: s, failure: f}
	}
	j.change = func(rank int, c *trainer.Config) { f.groups[rank] = groupOf(c) }
	out := j.onDevices(t, nil)
	f.check(t, out)
	sameOrNext(t, after, out)
}

// A lateSummer queues the sums of a step only in Wait, when the ranks have agreed on the step. In
// step lostAt+1 rank 1 is lost before that.
type lateSummer struct {
	trainer.GradientSummer
	failure *lateFailure
	parts   []nn.Buffer
	steps   int
}

func (s *lateSummer) Sum(grads nn.Buffer) error {
	s.parts = append(s.parts, grads)
	return nil
}

func (s *lateSummer) Wait(ctx context.Context) error {
	s.steps++
	if s.steps == lostAt+1 {
		s.failure.lose()
		defer close(s.failure.heard)
	}
	for _, part := range s.parts {
		if err := s.GradientSummer.Sum(part); err != nil {
			return err
		}
	}
	s.parts = s.parts[:0]
	return s.GradientSummer.Wait(ctx)
}

var errUnplugged = errors.New("unplugged")

// A lateFailure is the loss of rank 1, of which rank 0's engine hears late.
type lateFailure struct {
	groups          [2]*collective.Group
	arrived         chan struct{} // closed when rank 1 may be lost
	finished, heard chan struct{} // closed when rank 1's device has finished, and when rank 0 may hear of it
}

func newLateFailure() *lateFailure {
	return &lateFailure{arrived: make(chan struct{}), finished: make(chan struct{}), heard: make(chan struct{})}
}

func (f *lateFailure) hooks() deviceHooks {
	return deviceHooks{
		breaking: func(rank int, abort func()) {
			if rank == 0 {
				<-f.heard
			}
			abort()
		},
		ended: func(rank int, sync func() error) {
			if rank == 1 {
				_ = sync() // the error is Train's
				close(f.finished)
			}
		},
	}
}

// lose makes rank 1 abort, and returns when its device has finished all that it had queued.
func (f *lateFailure) lose() {
	<-f.arrived
	f.groups[1].Abort(errUnplugged)
	<-f.finished
}

func (f *lateFailure) check(t *testing.T, out []*outcome) {
	t.Helper()
	require.ErrorIs(t, out[1].err, errUnplugged)
	var named *collective.RankError
	require.ErrorAs(t, out[0].err, &named)
	require.Equal(t, 1, named.Rank)
}
