//go:build gpu && cgo && linux

package trainer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// A rank that has been told to abort changes its values no more, and its later gradients are
// wrong. Other ranks do not apply them, even if they hear of no failure. In this test the group is
// whole, so all ranks report that updates were withheld.
func TestRecordedAbortedRank(t *testing.T) {
	j := job{ranks: 2, batch: 16, steps: 40, optimizer: optim.DefaultAdam()}
	after := valuesAfter(t, j)
	for _, recording := range []trainer.Recording{{}, {Steps: 4}, {Apart: true}} {
		aborting := j
		aborting.change = func(rank int, c *trainer.Config) {
			if rank == 1 {
				c.Observer = observeSteps(func(e trainer.StepEvent) {
					if e.Step == lostAt {
						c.Backend.(*gpu.Backend).Abort()
					}
				})
			}
		}
		out := aborting.onDevices(t, &recording)
		sameOrNext(t, after, out)
		for _, o := range out {
			require.ErrorContains(t, o.err, "withheld")
		}
	}
}

// TestRecordedAbortedSums is TestAbortedSums for recorded steps. The host runs ahead of its
// device. In this test rank 0 hears of the failure only when its device has finished everything
// that was queued.
func TestRecordedAbortedSums(t *testing.T) {
	j := job{ranks: 2, batch: 16, steps: 40, optimizer: optim.DefaultAdam()}
	after := valuesAfter(t, j)
	for _, recording := range []trainer.Recording{{}, {Apart: true}} {
		f := newLateFailure()
		lost := j
		lost.hooks = f.hooks()
		lost.change = func(rank int, c *trainer.Config) {
			f.groups[rank] = groupOf(c)
			confirm := func(ctx context.Context) {
				if rank == 1 {
					close(f.arrived) // its device has the step after the next, whose sums wait for rank 0
					return
				}
				_ = c.Backend.Sync(ctx) // the error is Confirm's
				close(f.heard)
			}
			c.Strategy = &confirming{c.Strategy.(*trainer.AllReduce), confirm}
			if rank == 0 {
				c.Observer = observeSteps(func(e trainer.StepEvent) {
					if e.Step == lostAt {
						f.lose()
					}
				})
			}
		}
		out := lost.onDevices(t, &recording)
		f.check(t, out)
		sameOrNext(t, after, out)
	}
}

// A confirming strategy calls before when step lostAt+1 is to be confirmed.
type confirming struct {
	*trainer.AllReduce
	before func(ctx context.Context)
}

func (s *confirming) Confirm(ctx context.Context, p *nn.Params, steps []trainer.Step) ([]trainer.Report, error) {
	if steps[0].Index == lostAt {
		s.before(ctx)
	}
	return s.AllReduce.Confirm(ctx, p, steps)
}
