package trainer

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// A Recording makes Train record whole steps, from the batch to the update, and
// repeat them: on a device a step then costs the host one launch, or less. It
// takes a Backend that is an nn.Pacer, one Resident as Config.Train, and a
// Strategy that is Recordable. The bits are those of steps that are not recorded.
//
// The host is ahead of the device by a launch, and hears of a loss that is not
// finite, and of a wish to stop, only after it: such a step has been made when
// Train returns. Nobody looks at gradients, nor compares values before the end: a
// gradient that is not finite shows in the next step's loss.
type Recording struct {
	// Steps is how many steps one launch makes; 0 is 1. Before an evaluation, a
	// checkpoint or the end of an epoch there may be fewer.
	Steps int
	// Sums adds up gradients over the ranks. One rank needs none. A recording holds
	// them, in the strategy's buckets: each leaves when the backward pass has
	// completed it, and the pass goes on meanwhile.
	Sums Sums
	// Apart keeps Sums out of recordings: a step is one up to the gradients, the sum of
	// all of them at once, which nothing overlaps, and one from there on. Sums are
	// called at every step then, and may wait, as a Group's AllReduce does. Sums whose
	// order depends on the length of a vector, as NCCL's does, may have other bits then.
	// Which of the two is faster depends on the network between the ranks.
	Apart bool
}

// String says what ranks must have alike.
func (r *Recording) String() string {
	if r == nil {
		return "none"
	}
	return fmt.Sprintf("%d at once, apart %v", max(1, r.Steps), r.Apart)
}

// Resident are Batches whose rows lie in the backend's memory, where a recording
// finds those of its steps.
type Resident interface {
	Batches
	// Rows is how many rows this rank has at a step, and how many all ranks have.
	Rows(step int) (mine, all int)
	// Seek puts the order of a step's rows and of those of some steps after it in
	// place, and returns where the step's own begin and of how many steps they are.
	// On all ranks these are as many.
	Seek(step int) (first, steps int)
	// Gather queues the copy of so many rows, those of the pace's step, and returns
	// where they will be.
	Gather(p nn.Pace, rows int) nn.Batch
}

// A Recordable is a Strategy whose steps can be recorded.
type Recordable interface {
	Strategy
	// CanRecord says why not, as it is set up.
	CanRecord() error
	// Hyper is that of optim.Recordable.
	Hyper(step int) ([nn.HyperLen]float32, optim.Form)
	// Buckets is how many gradients leave together, in the order in which they leave,
	// from the end of the arena: the same on all ranks.
	Buckets(p *nn.Params) []int
	// Queue queues a step's update from the gradients in p times scale, by the
	// kernels of f with the hyper-parameters in hyper, and zeroes the gradients. Of a
	// step without a Form it makes the update that the optimizer makes.
	Queue(p *nn.Params, step int, f optim.Form, hyper nn.Buffer, scale float32)
	// Confirm counts steps whose updates were made, tells all ranks what came of them
	// here, and returns what did on all. All ranks settle the same steps.
	Confirm(ctx context.Context, p *nn.Params, steps []Step) ([]Report, error)
}

// checkRecording says why the steps of c cannot be recorded.
func (c Config) checkRecording() error {
	if c.Recording == nil {
		return nil
	}
	const cannot = "trainer: steps cannot be recorded: "
	if _, ok := c.Backend.(nn.Pacer); !ok {
		return fmt.Errorf(cannot+"the backend %T is no nn.Pacer", c.Backend)
	}
	s, ok := c.Strategy.(Recordable)
	if !ok {
		return fmt.Errorf(cannot+"the strategy %T is not Recordable", c.Strategy)
	}
	if len(c.Train) != 1 {
		return fmt.Errorf(cannot+"they have %d micro-batches, and a recording has one", len(c.Train))
	}
	if _, ok := c.Train[0].(Resident); !ok {
		return fmt.Errorf(cannot+"the rows, %T, are not Resident", c.Train[0])
	}
	if c.Accumulate {
		return errors.New(cannot + "gradients are accumulated over all steps")
	}
	if err := s.CanRecord(); err != nil {
		return fmt.Errorf(cannot+"%w", err)
	}
	return nil
}
