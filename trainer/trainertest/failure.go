package trainertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

var errCulprit = errors.New("the disk of this rank is full")

// names returns an error if err does not name the culprit.
func names(err error, culprit int) error {
	var failed *collective.RankError
	if !errors.As(err, &failed) || failed.Rank != culprit {
		return fmt.Errorf("rank %d has failed, and the error does not name it: %v", culprit, err)
	}
	return nil
}

// A call calls a method of the strategy.
type call struct {
	name string
	make func(ctx context.Context, r *rank) error
	// waits reports whether the call cannot succeed unless other ranks make it, too.
	waits func(p Promises) bool
}

// calls are the methods that may wait for other ranks. Before any but Start, the checks
// call Start and take the steps up to the one after which ranks agree.
var calls = []call{
	{"Start", func(ctx context.Context, r *rank) error { return r.start(ctx, trainer.State{}) }, func(p Promises) bool { return p.Equal }},
	{"Step", func(ctx context.Context, r *rank) error { _, err := r.step(ctx, r.every()-1); return err }, func(p Promises) bool { return p.Lockstep }},
	{"Total", func(ctx context.Context, r *rank) error {
		_, err := r.total(ctx, nn.Counts{nn.CountRows: 1})
		return err
	}, func(p Promises) bool { return p.Lockstep }},
	{"State", func(ctx context.Context, r *rank) error { _, err := r.state(ctx, r.group.Rank() == 0); return err }, func(Promises) bool { return false }},
	{"Finish", func(ctx context.Context, r *rank) error { return r.finish(ctx) }, func(p Promises) bool { return p.Compares }},
}

// failures are ways for a rank to fail.
var failures = []struct {
	name string
	fail func(r *rank)
}{
	{"aborts", func(r *rank) { r.group.Abort(errCulprit) }},
	{"leaves", func(r *rank) { _ = r.group.Close() }},
}

// checkFailure makes one rank fail while the others make a call. In that call or in the
// next step they get an error that names the rank, and their values stay as they were.
func checkFailure(h *harness, size int) error {
	if !h.Lockstep || size == 1 {
		return nil
	}
	for _, c := range calls {
		for _, f := range failures {
			for _, culprit := range []int{0, size - 1} {
				err := h.ranks(size, func(ctx context.Context, r *rank) error {
					return r.callOrFail(ctx, c, culprit, f.fail)
				})
				if err != nil {
					return fmt.Errorf("rank %d %s, others call %s: %w", culprit, f.name, c.name, err)
				}
			}
		}
	}
	return nil
}

// callOrFail fails on the culprit. On other ranks it makes the call and checks the error.
func (r *rank) callOrFail(ctx context.Context, c call, culprit int, fail func(r *rank)) error {
	if c.name != "Start" {
		if err := r.start(ctx, trainer.State{}); err != nil {
			return err
		}
		if err := r.toAgreement(ctx); err != nil {
			return err
		}
		if err := r.together(ctx); err != nil {
			return err
		}
	}
	if r.group.Rank() == culprit {
		fail(r)
		return nil
	}
	before := r.values()
	err := c.make(ctx, r)
	if err == nil && c.name != "Start" {
		_, err = r.step(ctx, r.every()-1)
	}
	if err := names(err, culprit); err != nil {
		return err
	}
	return r.unchanged(before)
}

var errCancelled = errors.New("cancelled by the user")

// ends are ways for the context of a call to end.
var ends = []struct {
	name string
	end  func(ctx context.Context) (context.Context, context.CancelFunc)
	why  error // that the call must return; nil: any, because a deadline may blame a rank
}{
	{"before it begins", func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(errCancelled)
		return ctx, func() {}
	}, errCancelled},
	{"while it waits", func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 20*time.Millisecond)
	}, nil},
}

// checkCancel makes a call on rank 0 alone and ends its context. The call returns, with
// an error if it needs the other ranks, and the values stay as they were.
func checkCancel(h *harness, size int) error {
	for _, c := range calls {
		for _, e := range ends {
			done := make(chan struct{})
			err := h.ranks(size, func(ctx context.Context, r *rank) error {
				if r.group.Rank() == 0 {
					defer close(done)
				}
				if c.name != "Start" {
					if err := r.start(ctx, trainer.State{}); err != nil {
						return err
					}
					if err := r.together(ctx); err != nil {
						return err
					}
				}
				if r.group.Rank() != 0 {
					<-done
					return nil
				}
				if c.name != "Start" {
					if err := r.toAgreement(ctx); err != nil {
						return err
					}
				}
				before := r.values()
				short, cancel := e.end(ctx)
				defer cancel()
				err := c.make(short, r)
				if size == 1 || !c.waits(h.Promises) {
					return nil
				}
				if err == nil {
					return errors.New("it succeeds, but no other rank makes the call")
				}
				if e.why != nil && !errors.Is(err, e.why) {
					return fmt.Errorf("the error does not say that it was cancelled: %w", err)
				}
				return r.unchanged(before)
			})
			if err != nil {
				return fmt.Errorf("the context of %s ends %s: %w", c.name, e.name, err)
			}
		}
	}
	return nil
}
