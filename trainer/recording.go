package trainer

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// A Recording makes Train record whole steps, from the batch to the update, and
// repeat them. On a device a step then costs the host at most one launch. It needs a
// Backend that is an nn.Pacer, a Resident Task with one micro-batch, and a Recordable
// Strategy. The bits are those of steps that are not recorded.
//
// The host is one launch ahead of the device, so it learns of a loss that is not
// finite, or of a request to stop, one launch later; those steps are done when Train
// returns. Gradients are not checked, and values are compared only at the end. A
// gradient that is not finite shows in the next step's loss.
type Recording struct {
	// Steps is the number of steps per launch; 0 is 1. A launch before an evaluation,
	// a checkpoint or the end of an epoch may have fewer.
	Steps int
	// Summer sums gradients over the ranks; one rank needs none. Recordings contain the
	// sums, in the strategy's buckets: each leaves as soon as the backward pass has
	// completed it, while the pass continues. If the Backend's Pace is an nn.Committer,
	// Summer also sums the ranks' votes on each step.
	Summer GradientSummer
	// Apart keeps the sums out of recordings. A step is then a recording up to the
	// gradients, one call of Summer for all of them, which nothing overlaps, and a
	// recording of the update. Summer may wait, as Group.AllReduce does. If its order of
	// summation depends on the length of a vector, as NCCL's does, the bits may differ from
	// those of buckets. Which is faster depends on the network between the ranks.
	Apart bool
}

// String describes what must be the same on all ranks.
func (r *Recording) String() string {
	if r == nil {
		return "none"
	}
	return fmt.Sprintf("%d at once, apart %v", max(1, r.Steps), r.Apart)
}

// A Recordable is a Strategy whose steps can be recorded.
type Recordable interface {
	Strategy
	// CanRecord returns an error if steps cannot be recorded with the strategy's
	// settings.
	CanRecord() error
	// Hyper is the method of optim.Recordable.
	Hyper(step int) ([nn.HyperLen]float32, optim.Form)
	// Buckets returns the lengths of buckets in the order in which they leave, from the
	// end of the arena. They are the same on all ranks.
	Buckets(p *nn.Params) []int
	// Queue queues a step's update from the gradients in p times scale, with the
	// kernels of f and the hyper-parameters in hyper, and zeroes the gradients. For a
	// step without a Form it calls the optimizer.
	Queue(p *nn.Params, step int, f optim.Form, hyper nn.Buffer, scale float32)
	// Confirm counts steps that the device has done and exchanges their results with
	// all ranks. All ranks confirm the same steps.
	Confirm(ctx context.Context, p *nn.Params, steps []Step) ([]Report, error)
}

// checkRecording returns an error if the steps of c cannot be recorded.
func (c Config) checkRecording() error {
	if c.Recording == nil {
		return nil
	}
	const cannot = "trainer: steps cannot be recorded: "
	if _, ok := c.Backend.(nn.Pacer); !ok {
		return fmt.Errorf(cannot+"the backend %T is not an nn.Pacer", c.Backend)
	}
	s, ok := c.Strategy.(Recordable)
	if !ok {
		return fmt.Errorf(cannot+"the strategy %T is not Recordable", c.Strategy)
	}
	if n := c.Task.Micro(); n != 1 {
		return fmt.Errorf(cannot+"they have %d micro-batches, and a recording has one", n)
	}
	if _, ok := c.Task.(Resident); !ok {
		return fmt.Errorf(cannot+"the task, %T, is not Resident", c.Task)
	}
	if c.Accumulate {
		return errors.New(cannot + "gradients are accumulated over all steps")
	}
	if err := s.CanRecord(); err != nil {
		return fmt.Errorf(cannot+"%w", err)
	}
	return nil
}
