package trainer

import (
	"context"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// A Strategy decides how ranks agree: on where training begins, on the next
// values, on when to stop, on the result of an evaluation, and on whether their
// values are still the same. Train itself communicates with no other rank.
//
// A Strategy owns the optimizer. Its methods are called from one goroutine. Those
// of AllReduce are collective: all ranks call them in the same order. A strategy
// whose ranks do not step together need not wait for other ranks in any of them.
// Every method returns when its context ends. If a rank fails, the methods of the other
// ranks return an error that names it (a *collective.RankError), if they wait for it.
//
// Package trainertest has the conformance suite.
type Strategy interface {
	// Start agrees with the other ranks of a group on where to begin, and sets the
	// values in Start.Params and the optimizer's state to the same on all of them. It
	// is called once before the first step. It may be called again with the group of a
	// later View; the strategy then continues from Start.From as if it were new.
	Start(ctx context.Context, s Start) (Place, error)
	// Step turns the gradients in p into the next values. If it fails, the values are
	// as before. Either way the gradients are garbage afterwards, unless Report.Cleared
	// says that they are 0. If no rank has rows (Report.Weight 0), the values do not
	// change. Of the Report, Train needs Weight, Loss, Stop and Cleared; the rest is for
	// observers.
	Step(ctx context.Context, p *nn.Params, s Step) (Report, error)
	// Total turns the counts of this rank's share of an evaluation into those that
	// Train reports, such as their sum over all ranks.
	Total(ctx context.Context, own nn.Counts) (nn.Counts, error)
	// Finish ends training after the last step. It returns an error if the ranks
	// should hold the same values and do not. It changes neither values nor state, and
	// may be called again.
	Finish(ctx context.Context, p *nn.Params) error
	// State returns what Start needs to resume from here. All ranks call it, between
	// steps. wanted is set on the rank that saves; elsewhere the result is not used. The
	// result belongs to the caller: later steps do not change it.
	State(ctx context.Context, wanted bool) (State, error)
	// Close releases what the strategy holds, but not the parameters. It may be called
	// before Start, after a failure, and more than once. Start may follow it.
	Close() error
}

// A Start is what a strategy begins with.
type Start struct {
	Group  *collective.Group
	Params *nn.Params
	// From is the state to resume from; the zero State at the beginning of a
	// training. Only that of rank 0 counts.
	From State
	// Steps is the number of steps after which training ends, including those before From;
	// 0: unknown.
	Steps int
	// Settings must be the same on all ranks; a strategy that compares them returns
	// a *SettingsError if they are not.
	Settings []Setting
}

// A Place is this rank's place among those that train. Its rows and random
// numbers follow from it.
type Place struct {
	View collective.View // the ranks that train; without servers and observers
	Step int             // steps done before
}

// Rank is this rank's number among those that train.
func (p Place) Rank() int { return p.View.Self }

// Size is how many ranks train.
func (p Place) Size() int { return p.View.Size() }

// A Streamer is a Strategy that can take gradients while the backward pass is
// still making others. A step that it has opened ends in Step or in Abandon.
type Streamer interface {
	Strategy
	// Open begins a step whose gradients will be divided by the weight of all
	// rows. Only Index and Late of s are used; the rest is passed to Step again. The
	// function it returns is for nn.Pass.Final: gradients at and after arena offset
	// lo are this rank's final ones, and belong to the strategy.
	Open(ctx context.Context, p *nn.Params, s Step) (final func(lo int))
	// Abandon gives up a step that was opened and cannot come to Step. On return
	// nothing is in flight; if something was, the group is broken, for cause.
	Abandon(cause error)
}

// State is what a strategy remembers besides the parameters. With the values it
// is all that a job with as many ranks needs to resume with the same bits: rows,
// dropout and schedules are functions of the step.
type State struct {
	Step  int                  // steps done
	Slots map[string][]float32 // the optimizer's arenas, see optim.Optimizer.Slots, and others of the strategy
	// Residuals are arenas of what Compression has kept back, by rank; nil
	// without it. A job with another number of ranks begins with zeros instead.
	Residuals [][]float32
}

// Step is one rank's part in a step.
type Step struct {
	Index     int     // counts from 0
	Weight    int     // rows behind the gradients here; the sum over ranks divides them
	Undivided bool    // the gradients are summed over ranks and not divided
	Loss      float64 // the sum of the loss over these rows
	Stop      bool    // this rank asks all ranks to stop after this step
	Buckets   int     // in which the gradients of a recorded step left
	Late      bool    // ranks may be late, because one writes a checkpoint before this step
	Last      bool    // training ends after this step
	Switch    int     // 1 + the strategy of a Switching that this rank asks for, or 0
}

// Report describes a step. It is the same on every rank but for the times, unless the
// strategy is Periodic or Asynchronous.
type Report struct {
	Loss     float64       // mean over the rows of all ranks
	Weight   int           // rows of all ranks
	Stop     bool          // some rank asked to stop
	Switch   int           // Step.Switch of the first rank that set it
	Cleared  bool          // the gradients are 0, so Train need not zero them
	Bytes    int           // of gradients that were exchanged
	Buckets  int           // in which they left, rows counting as one
	Sent     int           // bytes of payload that this rank sent for them, accurate to a block of ring order
	Plain    int           // and would have sent for all of them, without compression
	AsRows   int           // tables of whose gradients only touched rows left; see Sparse
	Exchange time.Duration // waiting for others and moving gradients, after the backward pass
	Update   time.Duration // the optimizer
}
