package trainertest

import (
	"context"
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// start starts the strategy from a state.
func (r *rank) start(ctx context.Context, from trainer.State) error {
	r.doing.Store("Start")
	place, err := r.strategy.Start(ctx, trainer.Start{Group: r.group, Params: r.params, From: from})
	if err == nil && place.Rank() != r.group.Rank() {
		err = fmt.Errorf("Place says rank %d, the group says %d", place.Rank(), r.group.Rank())
	}
	if err != nil {
		return fmt.Errorf("Start: %w", err)
	}
	return nil
}

// step takes a step with one row.
func (r *rank) step(ctx context.Context, index int) (trainer.Report, error) {
	return r.stepOf(ctx, trainer.Step{Index: index, Weight: 1, Loss: 1})
}

// stepOf fills the gradients and takes a step.
func (r *rank) stepOf(ctx context.Context, s trainer.Step) (trainer.Report, error) {
	r.doing.Store("Step")
	r.fill(s, 0, r.params.Grads.Len())
	report, err := r.strategy.Step(ctx, r.params, s)
	if err != nil {
		return report, fmt.Errorf("Step %d: %w", s.Index, err)
	}
	for _, q := range r.params.List {
		if report.Cleared && slices.ContainsFunc(q.Grads.Float32s(), func(g float32) bool { return g != 0 }) {
			return report, fmt.Errorf("Step %d: Report.Cleared is set, but the gradients of %s are not 0", s.Index, q.Name)
		}
	}
	return report, nil
}

// streams returns an error if the strategy is not a Streamer.
func (r *rank) streams() error {
	if _, ok := r.strategy.(trainer.Streamer); !ok {
		return fmt.Errorf("%T is not a trainer.Streamer", r.strategy)
	}
	return nil
}

// open begins a streamed step. It returns when the gradients of this many parameters,
// counted from the last, are final, as in the middle of a backward pass.
func (r *rank) open(ctx context.Context, s trainer.Step, parameters int) trainer.Streamer {
	r.doing.Store("Open")
	streamer := r.strategy.(trainer.Streamer)
	final := streamer.Open(ctx, r.params, s)
	hi := r.params.Grads.Len()
	for _, q := range slices.Backward(r.params.List) {
		if parameters--; parameters < 0 {
			break
		}
		r.fill(s, q.Offset, hi)
		final(q.Offset)
		hi = q.Offset
	}
	return streamer
}

// fill sets gradients lo to hi. They depend on the step and the rank, and are 0 if this
// rank has no rows.
func (r *rank) fill(s trainer.Step, lo, hi int) {
	g := r.params.Grads.Float32s()
	for i := lo; i < hi; i++ {
		g[i] = 0
		if s.Weight > 0 {
			g[i] = float32((i+1)*(r.group.Rank()+2)*(s.Index+3)%11-5) / 8
		}
	}
}

// steps takes the steps from first to end, exclusive.
func (r *rank) steps(ctx context.Context, first, end int) error {
	for index := first; index < end; index++ {
		if _, err := r.step(ctx, index); err != nil {
			return err
		}
	}
	return nil
}

// toAgreement takes the steps before the first one after which ranks agree.
func (r *rank) toAgreement(ctx context.Context) error { return r.steps(ctx, 0, r.every()-1) }

func (r *rank) finish(ctx context.Context) error {
	r.doing.Store("Finish")
	if err := r.strategy.Finish(ctx, r.params); err != nil {
		return fmt.Errorf("Finish: %w", err)
	}
	return nil
}

func (r *rank) state(ctx context.Context, wanted bool) (trainer.State, error) {
	r.doing.Store("State")
	s, err := r.strategy.State(ctx, wanted)
	if err != nil {
		return s, fmt.Errorf("State: %w", err)
	}
	return s, nil
}

func (r *rank) total(ctx context.Context, own nn.Counts) (nn.Counts, error) {
	r.doing.Store("Total")
	counts, err := r.strategy.Total(ctx, own)
	if err != nil {
		return counts, fmt.Errorf("Total: %w", err)
	}
	return counts, nil
}
