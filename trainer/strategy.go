package trainer

import (
	"context"
	"time"

	"github.com/ringtrain/ringtrain/nn"
)

// A Strategy decides how ranks agree on the next parameters. It owns the
// optimizer. Its methods are called from one goroutine; on all ranks in the
// same order, but for State.
type Strategy interface {
	// Init gives all ranks the parameters of rank 0 and checks that they have
	// them. from is the state to go on from, the zero State at the beginning.
	// Its Step is the same on all ranks; the rest counts on rank 0 alone and
	// reaches the others from there.
	Init(ctx context.Context, p *nn.Params, from State) error
	// Step turns the gradients in p into the next values, or fails and leaves
	// the values as they were. The gradients are used up.
	Step(ctx context.Context, p *nn.Params, s Step) (Report, error)
	// State is what Init needs on rank 0 to go on from here. It is called there
	// alone, between steps, and waits for no other rank; of a Collector after
	// Collect.
	State(ctx context.Context) (State, error)
	// Close frees what the strategy holds. The parameters live on.
	Close() error
}

// A Streamer is a Strategy that can take gradients while the backward pass is
// still making others. A step that it has opened ends in Step or in Abandon.
type Streamer interface {
	Strategy
	// Open begins a step whose gradients will be divided by the weight of all
	// rows. Of s, Index and Late count; the rest is given to Step again. What it
	// returns is for nn.Pass.Final: gradients at and after arena offset lo are
	// this rank's final ones, and belong to the strategy.
	Open(ctx context.Context, p *nn.Params, s Step) (final func(lo int))
	// Abandon gives up a step that was opened and cannot come to Step. On return
	// nothing is in flight; if something was, the group is broken, for cause.
	Abandon(cause error)
}

// A Collector is a Strategy whose ranks may remember different things, which
// rank 0 has to have for State.
type Collector interface {
	Strategy
	// Collect brings to rank 0 what State there returns of the other ranks, if
	// wanted on rank 0. All ranks call it, between steps.
	Collect(ctx context.Context, wanted bool) error
}

// State is what a strategy remembers beside the parameters. With the values it
// is all that a job of as many ranks needs to go on with the same bits: rows,
// dropout and schedules are functions of the step.
type State struct {
	Step  int                  // steps done
	Slots map[string][]float32 // the optimizer's arenas, see optim.Optimizer.Slots
	// Residuals are arenas of what Compression has kept back, by rank; nil
	// without it. Those of another number of ranks are left out: each begins at zero.
	Residuals [][]float32
}

// Step is one rank's part in a step.
type Step struct {
	Index     int     // counts from 0
	Weight    int     // rows behind the gradients here; the sum over ranks divides them
	Undivided bool    // the gradients are summed over ranks and not divided
	Loss      float64 // the sum of the loss over these rows
	Stop      bool    // this rank wishes that all stop after this step
	Late      bool    // ranks may be late, because one writes a checkpoint before this step
}

// Report is what a step was, the same on every rank but for the times.
type Report struct {
	Loss     float64       // mean over the rows of all ranks
	Weight   int           // rows of all ranks
	Stop     bool          // some rank wished to stop
	Bytes    int           // of gradients that were exchanged
	Buckets  int           // in which they left
	Sent     int           // bytes of payload that this rank sent for them, to a block of ring order
	Plain    int           // and would have sent without compression
	Exchange time.Duration // waiting for others and moving gradients, after the backward pass
	Update   time.Duration // the optimizer
}
