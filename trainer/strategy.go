package trainer

import (
	"context"
	"time"

	"github.com/ringtrain/ringtrain/nn"
)

// A Strategy decides how ranks agree on the next parameters. It owns the
// optimizer. Its methods are called from one goroutine; on all ranks in the
// same order.
type Strategy interface {
	// Init gives all ranks the parameters of rank 0 and checks that they have
	// them. from is the state to go on from, the zero State at the beginning.
	Init(ctx context.Context, p *nn.Params, from State) error
	// Step turns the gradients in p into the next values, or fails and leaves
	// the values as they were. The gradients are used up.
	Step(ctx context.Context, p *nn.Params, s Step) (Report, error)
	// State is what Init needs to go on from here.
	State(ctx context.Context) (State, error)
	// Close frees what the strategy holds. The parameters live on.
	Close() error
}

// State is what a strategy remembers beside the parameters.
type State struct {
	Step  int                  // steps done
	Slots map[string][]float32 // the optimizer's arenas, see optim.Optimizer.Slots
}

// Step is one rank's part in a step.
type Step struct {
	Index     int       // counts from 0
	Weight    int       // rows behind the gradients here; the sum over ranks divides them
	Undivided bool      // the gradients are summed over ranks and not divided
	Loss      nn.Buffer // the sum of the loss over these rows; may be empty
	Stop      bool      // this rank wishes that all stop after this step
}

// Report is what a step was, the same on every rank but for the times.
type Report struct {
	Loss     float64       // mean over the rows of all ranks
	Weight   int           // rows of all ranks
	Stop     bool          // some rank wished to stop
	Bytes    int           // of gradients that were exchanged
	Exchange time.Duration // waiting for others and moving gradients
	Update   time.Duration // the optimizer
}
