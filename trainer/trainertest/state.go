package trainertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/ringtrain/ringtrain/trainer"
)

// The checks in this file make allTheWay steps, and call State after halfway of them.
const (
	halfway   = 3
	allTheWay = 6
)

// A snapshot is what rank 0 saves.
type snapshot struct {
	state  trainer.State
	values []float32
}

// saved takes all steps. If calls is set, the ranks call State halfway. saved returns
// rank 0's snapshots from halfway and from the end.
func (h *harness) saved(size int, calls bool, wanted func(rank int) bool) (kept, end snapshot, err error) {
	err = h.ranks(size, func(ctx context.Context, r *rank) error {
		if err := r.start(ctx, trainer.State{}); err != nil {
			return err
		}
		if err := r.steps(ctx, 0, halfway); err != nil {
			return err
		}
		first := r.group.Rank() == 0
		var before trainer.State
		if calls {
			s, err := r.state(ctx, wanted(r.group.Rank()))
			if err != nil {
				return err
			}
			if first {
				kept, before = snapshot{s, r.values()}, cloneState(s)
			}
		}
		if err := r.steps(ctx, halfway, allTheWay); err != nil {
			return err
		}
		if first && calls && wanted(0) {
			if !reflect.DeepEqual(before, kept.state) {
				return errors.New("later steps change a State that was returned")
			}
		}
		s, err := r.state(ctx, first)
		if first {
			end = snapshot{s, r.values()}
		}
		return err
	})
	return kept, end, err
}

func cloneState(s trainer.State) trainer.State {
	s.Slots, s.Residuals = maps.Clone(s.Slots), slices.Clone(s.Residuals)
	for name := range s.Slots {
		s.Slots[name] = slices.Clone(s.Slots[name])
	}
	for i := range s.Residuals {
		s.Residuals[i] = slices.Clone(s.Residuals[i])
	}
	return s
}

// checkState calls State with wanted set on rank 0, on all ranks, and on none. The
// State has the number of steps done, and taking it does not affect later steps.
func checkState(h *harness, size int) error {
	_, want, err := h.saved(size, false, nil)
	if err != nil {
		return err
	}
	for name, wanted := range map[string]func(int) bool{
		"rank 0":    func(rank int) bool { return rank == 0 },
		"all ranks": func(int) bool { return true },
		"no rank":   func(int) bool { return false },
	} {
		kept, end, err := h.saved(size, true, wanted)
		if err != nil {
			return fmt.Errorf("if %s wants the state: %w", name, err)
		}
		if wanted(0) && kept.state.Step != halfway && !(h.Asynchronous && kept.state.Step > halfway) {
			return fmt.Errorf("if %s wants the state: it says %d steps are done, not %d", name, kept.state.Step, halfway)
		}
		if !h.Lockstep {
			continue
		}
		if err := sameBits(want.values, end.values); err != nil {
			return fmt.Errorf("if %s wants the state, later steps give different values: %w", name, err)
		}
	}
	return nil
}

// checkResume starts new strategies from rank 0's snapshot. They make the same steps and
// end in the same state, whatever State other ranks pass to Start.
func checkResume(h *harness, size int) error {
	if !h.Resumes {
		return nil
	}
	kept, want, err := h.saved(size, true, func(rank int) bool { return rank == 0 })
	if err != nil {
		return err
	}
	before := cloneState(kept.state)
	return h.ranks(size, func(ctx context.Context, r *rank) error {
		from := trainer.State{Step: 99}
		if r.group.Rank() == 0 {
			from = kept.state
			copy(r.params.Values.Float32s(), kept.values)
		}
		return r.resume(ctx, from, before, want)
	})
}

// resume starts from a State, makes the second half of the steps, and compares the
// result with want. before is a copy of from.
func (r *rank) resume(ctx context.Context, from, before trainer.State, want snapshot) error {
	r.doing.Store("Start")
	place, err := r.strategy.Start(ctx, trainer.Start{Group: r.group, Params: r.params, From: from})
	if err != nil {
		return fmt.Errorf("Start: %w", err)
	}
	if place.Step != halfway {
		return fmt.Errorf("Start resumes after step %d, but the state is that after step %d", place.Step, halfway)
	}
	if err := r.steps(ctx, halfway, allTheWay); err != nil {
		return err
	}
	if err := sameBits(want.values, r.params.Values.Float32s()); err != nil {
		return fmt.Errorf("resumed steps give different values: %w", err)
	}
	first := r.group.Rank() == 0
	end, err := r.state(ctx, first)
	if err != nil || !first {
		return err
	}
	if !reflect.DeepEqual(want.state, end) {
		return errors.New("resumed steps end in a different state")
	}
	if !reflect.DeepEqual(before, from) {
		return errors.New("resumed steps change the State that Start was given")
	}
	return nil
}

// checkNextView starts the same strategies again with the group of a later View, from
// rank 0's snapshot. They make the same steps as new strategies would.
func checkNextView(h *harness, size int) error {
	if !h.Resumes {
		return nil
	}
	kept, want, err := h.saved(size, true, func(rank int) bool { return rank == 0 })
	if err != nil {
		return err
	}
	before := cloneState(kept.state)
	next := h.groups(size)
	defer func() {
		for _, g := range next {
			_ = g.Close()
		}
	}()
	return h.ranks(size, func(ctx context.Context, r *rank) error {
		if err := r.start(ctx, trainer.State{}); err != nil {
			return err
		}
		if err := r.steps(ctx, 0, halfway+1); err != nil { // one more than the snapshot has
			return err
		}
		from := trainer.State{}
		if r.group.Rank() == 0 {
			from = kept.state
			copy(r.params.Values.Float32s(), kept.values)
		}
		old := r.group
		r.group = next[old.Rank()]
		defer func() { r.group = old }()
		err := r.resume(ctx, from, before, want)
		if err != nil {
			r.group.Abort(err)
		}
		return err
	})
}
