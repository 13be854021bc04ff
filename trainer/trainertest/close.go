package trainertest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"weak"

	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// checkClose closes strategies twice: before Start, after some steps, and after a failed
// step. The parameters keep their values. Afterwards no goroutine is left, and nothing
// refers to the parameters.
func checkClose(h *harness, size int) error {
	for name, use := range map[string]func(ctx context.Context, r *rank) error{
		"before Start": func(context.Context, *rank) error { return nil },
		"after steps": func(ctx context.Context, r *rank) error {
			return errors.Join(r.start(ctx, trainer.State{}), r.steps(ctx, 0, 3), r.finish(ctx))
		},
		"after a failed step": func(ctx context.Context, r *rank) error {
			if err := r.start(ctx, trainer.State{}); err != nil {
				return err
			}
			if err := r.together(ctx); err != nil {
				return err
			}
			r.group.Abort(errCulprit)
			err := r.steps(ctx, 0, r.every())
			if err == nil && h.Lockstep && size > 1 {
				return errors.New("a step succeeds in a broken group")
			}
			return nil
		},
	} {
		if err := h.closes(size, use); err != nil {
			return fmt.Errorf("Close %s: %w", name, err)
		}
	}
	return nil
}

func (h *harness) closes(size int, use func(ctx context.Context, r *rank) error) error {
	groups := h.groups(size)
	before := goleak.IgnoreCurrent() // the transports' goroutines
	params := make([]weak.Pointer[nn.Params], size)
	err := h.inGroups(groups, func(ctx context.Context, r *rank) error {
		params[r.group.Rank()] = weak.Make(r.params)
		if err := use(ctx, r); err != nil {
			return err
		}
		values := r.values()
		r.doing.Store("Close")
		for _, call := range []string{"the first", "the second"} {
			if err := r.strategy.Close(); err != nil {
				return fmt.Errorf("%s call: %w", call, err)
			}
		}
		return r.unchanged(values)
	})
	if err != nil {
		return err
	}
	if err := goleak.Find(before); err != nil {
		return fmt.Errorf("goroutines are left: %w", err)
	}
	runtime.GC()
	for i := range params {
		if params[i].Value() != nil {
			return fmt.Errorf("something still refers to the parameters of rank %d", i)
		}
	}
	return nil
}

// checkRestart starts strategies again after Close.
func checkRestart(h *harness, size int) error {
	return h.ranks(size, func(ctx context.Context, r *rank) error {
		for range 2 {
			if err := r.start(ctx, trainer.State{}); err != nil {
				return err
			}
			if err := r.steps(ctx, 0, r.every()+1); err != nil {
				return err
			}
			if err := r.finish(ctx); err != nil {
				return err
			}
			if err := r.strategy.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}
