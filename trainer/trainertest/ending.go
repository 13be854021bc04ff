package trainertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/ringtrain/ringtrain/trainer"
)

// checkStop makes each rank in turn ask to stop. All ranks report it after that step or, if
// they do not agree then, after the next at which they do, and not before.
func checkStop(h *harness, size int) error {
	const asked, after = 2, 2
	reported := asked
	for !h.agree(reported) {
		reported++
	}
	for who := range size {
		err := h.ranks(size, func(ctx context.Context, r *rank) error {
			if err := r.start(ctx, trainer.State{}); err != nil {
				return err
			}
			for index := range reported + after {
				mine := r.group.Rank() == who && index == asked
				report, err := r.stepOf(ctx, trainer.Step{Index: index, Weight: 1, Loss: 1, Stop: mine})
				if err != nil {
					return err
				}
				if index < reported && report.Stop && !(h.Asynchronous && r.group.Rank() != who) {
					return fmt.Errorf("step %d reports a stop that no rank has asked for", index)
				}
				if index == reported && !report.Stop && (h.Lockstep || mine) {
					return fmt.Errorf("rank %d asks to stop at step %d, but the report does not say so", who, index)
				}
				if report.Stop && h.Asynchronous { // it may wait in Step until all ranks stop
					break
				}
			}
			if h.Asynchronous {
				return r.finish(ctx)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkSwitch makes each rank in turn ask for another strategy. All ranks report it in that
// step, and no rank in another.
func checkSwitch(h *harness, size int) error {
	if !h.Switches {
		return nil
	}
	const asked, steps, choice = 1, 3, 3
	for who := range size {
		err := h.ranks(size, func(ctx context.Context, r *rank) error {
			if err := r.start(ctx, trainer.State{}); err != nil {
				return err
			}
			for index := range steps {
				s, want := trainer.Step{Index: index, Weight: 1, Loss: 1}, 0
				if index == asked {
					want = choice
				}
				if r.group.Rank() == who {
					s.Switch = want
				}
				report, err := r.stepOf(ctx, s)
				if err != nil {
					return err
				}
				if report.Switch != want {
					return fmt.Errorf("rank %d asks for strategy %d, but the report has %d", who, want, report.Switch)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkFinish calls Finish twice. Neither call changes values or state.
func checkFinish(h *harness, size int) error {
	return h.ranks(size, func(ctx context.Context, r *rank) error {
		if err := r.start(ctx, trainer.State{}); err != nil {
			return err
		}
		if err := r.steps(ctx, 0, 3); err != nil {
			return err
		}
		if h.Asynchronous { // others may still take steps
			if err := r.finish(ctx); err != nil {
				return err
			}
		}
		state, err := r.state(ctx, r.group.Rank() == 0)
		if err != nil {
			return err
		}
		before := r.values()
		for _, call := range []string{"the first", "the second"} {
			if err := r.finish(ctx); err != nil {
				return fmt.Errorf("%s call: %w", call, err)
			}
			if err := r.unchanged(before); err != nil {
				return fmt.Errorf("after %s call of Finish: %w", call, err)
			}
			after, err := r.state(ctx, r.group.Rank() == 0)
			if err != nil {
				return err
			}
			if r.group.Rank() == 0 && !reflect.DeepEqual(state, after) {
				return fmt.Errorf("%s call of Finish changes the state", call)
			}
		}
		return nil
	})
}

// checkFinishCompares changes a value on the last rank. Finish names that rank on all
// ranks.
func checkFinishCompares(h *harness, size int) error {
	if !h.Compares || size == 1 {
		return nil
	}
	return h.ranks(size, func(ctx context.Context, r *rank) error {
		odd := size - 1
		if err := r.start(ctx, trainer.State{}); err != nil {
			return err
		}
		if err := r.steps(ctx, 0, 3*r.every()); err != nil {
			return err
		}
		if r.group.Rank() == odd {
			r.params.Values.Float32s()[5]++
		}
		err := r.finish(ctx)
		var differ *trainer.DivergedError
		if !errors.As(err, &differ) || !slices.Equal(differ.Ranks, []int{odd}) {
			return fmt.Errorf("the values of rank %d differ from rank 0's, but Finish returns %v", odd, err)
		}
		return nil
	})
}
