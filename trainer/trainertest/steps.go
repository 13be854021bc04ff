package trainertest

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// rowsOf returns the rows of a rank in steps 0 to 5 of checkStep: all ranks have the
// same number, all have different numbers, one has none, all have none, or only rank 0
// has some.
func rowsOf(index, rank, size int) int {
	switch index {
	case 1:
		return rank + 1
	case 2:
		if rank == size-1 && size > 1 {
			return 0
		}
	case 3:
		return 0
	case 4:
		if rank > 0 {
			return 0
		}
	}
	return 3
}

// checkStep takes steps with uneven rows, and checks reports and values.
func checkStep(h *harness, size int) error {
	for _, undivided := range []bool{false, true} {
		const steps = 6
		reports, values := [steps][]trainer.Report{}, [steps][][]float32{}
		for s := range steps {
			reports[s], values[s] = make([]trainer.Report, size), make([][]float32, size)
		}
		err := h.ranks(size, func(ctx context.Context, r *rank) (err error) {
			i := r.group.Rank()
			if err := r.start(ctx, trainer.State{}); err != nil {
				return err
			}
			for index := range steps {
				rows := rowsOf(index, i, size)
				s := trainer.Step{Index: index, Weight: rows, Loss: float64(rows * (i + 1)), Undivided: undivided}
				if reports[index][i], err = r.stepOf(ctx, s); err != nil {
					return err
				}
				values[index][i] = r.values()
			}
			return nil
		})
		if err != nil {
			return err
		}
		for index := range steps {
			if err := h.checkReports(index, reports[index]); err != nil {
				return fmt.Errorf("step %d: %w", index, err)
			}
			if err := h.checkValues(index, values[:index+1]); err != nil {
				return fmt.Errorf("step %d: %w", index, err)
			}
		}
	}
	return nil
}

// checkReports checks what the ranks report about a step of checkStep.
func (h *harness) checkReports(index int, reports []trainer.Report) error {
	if !h.Lockstep {
		return nil
	}
	if !h.agree(index) {
		return h.checkOwnReports(index, reports)
	}
	weight, loss := 0, 0.
	for i := range reports {
		for k := range h.every() {
			rows := rowsOf(index-k, i, len(reports))
			weight, loss = weight+rows, loss+float64(rows*(i+1))
		}
	}
	loss /= float64(max(weight, 1))
	for i, got := range reports {
		switch {
		case got.Weight != weight:
			return fmt.Errorf("rank %d reports %d rows, all ranks have %d", i, got.Weight, weight)
		case math.Abs(got.Loss-loss) > 1e-9:
			return fmt.Errorf("rank %d reports a loss of %v, the mean over the rows of all ranks is %v", i, got.Loss, loss)
		case got.Stop:
			return fmt.Errorf("rank %d reports a stop that no rank asked for", i)
		}
	}
	return nil
}

// checkOwnReports is checkReports for a step after which ranks do not agree.
func (h *harness) checkOwnReports(index int, reports []trainer.Report) error {
	for i, got := range reports {
		rows := rowsOf(index, i, len(reports))
		switch {
		case got.Weight != rows:
			return fmt.Errorf("rank %d reports %d rows, it has %d", i, got.Weight, rows)
		case rows > 0 && math.Abs(got.Loss-float64(i+1)) > 1e-9:
			return fmt.Errorf("rank %d reports a loss of %v, the mean over its rows is %d", i, got.Loss, i+1)
		case got.Stop:
			return fmt.Errorf("rank %d reports a stop, but ranks do not agree after this step", i)
		}
	}
	return nil
}

// checkValues checks the values of all ranks after a step of checkStep. values[i] are
// those after step i.
func (h *harness) checkValues(index int, values [][][]float32) error {
	now := values[index]
	agree := h.agree(index)
	if h.Equal && agree {
		if err := allEqual(now); err != nil {
			return err
		}
	}
	if index == 0 {
		return nil
	}
	others := h.Asynchronous && len(now) > 1 // may change values at any time, or make a gradient late
	for i := range now {
		own, any := rowsOf(index, i, len(now)) > 0, rowsOf(index, 0, len(now)) > 0
		if h.every() > 1 { // the others' rows have no effect yet, or those of earlier steps have one now
			any = own || agree
		}
		same := sameBits(values[index-1][i], now[i]) == nil
		if !any && !same && !others {
			return fmt.Errorf("no rank has rows, but the values of rank %d change", i)
		}
		if any && same && (h.Equal && h.every() == 1 || own) && !others {
			return fmt.Errorf("the values of rank %d do not change, though there are rows", i)
		}
	}
	return nil
}

// checkStream makes the same steps twice: with gradients that stream, and without.
func checkStream(h *harness, size int) error {
	if !h.Streams {
		return nil
	}
	var values [2][]float32
	for k := range values {
		err := h.ranks(size, func(ctx context.Context, r *rank) error {
			if err := r.streams(); err != nil {
				return err
			}
			if err := r.start(ctx, trainer.State{}); err != nil {
				return err
			}
			for index := range 4 {
				s := trainer.Step{Index: index, Weight: 1, Loss: 1}
				if k == 1 {
					r.open(ctx, trainer.Step{Index: index, Weight: 1}, len(r.params.List))
				} else {
					r.fill(s, 0, r.params.Grads.Len())
				}
				r.doing.Store("Step")
				if _, err := r.strategy.Step(ctx, r.params, s); err != nil {
					return err
				}
			}
			if r.group.Rank() == 0 {
				values[k] = r.values()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := sameBits(values[0], values[1]); err != nil {
		return fmt.Errorf("streamed gradients give different values: %w", err)
	}
	return nil
}

// checkAbandon abandons a step on one rank after some of its gradients are final. The
// values stay as they were, and all other ranks get an error that names it.
func checkAbandon(h *harness, size int) error {
	if !h.Streams {
		return nil
	}
	return h.ranks(size, func(ctx context.Context, r *rank) error {
		if err := r.streams(); err != nil {
			return err
		}
		if err := r.start(ctx, trainer.State{}); err != nil {
			return err
		}
		if err := r.steps(ctx, 0, 2); err != nil {
			return err
		}
		if err := r.together(ctx); err != nil {
			return err
		}
		before := r.values()
		if r.group.Rank() == size-1 {
			s := r.open(ctx, trainer.Step{Index: 2, Weight: 1}, len(r.params.List)/2)
			r.doing.Store("Abandon")
			s.Abandon(errCulprit)
			r.group.Abort(errCulprit)
		} else if _, err := r.step(ctx, 2); h.Lockstep {
			if err := names(err, size-1); err != nil {
				return err
			}
		}
		return r.unchanged(before)
	})
}

// checkTotal adds counts over all ranks.
func checkTotal(h *harness, size int) error {
	if !h.Lockstep {
		return nil
	}
	return h.ranks(size, func(ctx context.Context, r *rank) error {
		if err := r.start(ctx, trainer.State{}); err != nil {
			return err
		}
		i := float64(r.group.Rank())
		own := nn.Counts{nn.CountRows: i, nn.CountCorrect: 2 * i, nn.CountLoss: .5}
		got, err := r.total(ctx, own)
		if err != nil {
			return err
		}
		n := float64(size)
		want := nn.Counts{nn.CountRows: n * (n - 1) / 2, nn.CountCorrect: n * (n - 1), nn.CountLoss: n / 2}
		if len(got) != len(want) {
			return fmt.Errorf("Total returns %v, the counts of all ranks are %v", got, want)
		}
		for name, x := range want {
			if got[name] != x {
				return fmt.Errorf("Total returns %v, the counts of all ranks are %v", got, want)
			}
		}
		if own[nn.CountRows] != i {
			return errors.New("Total changes the counts that it is given")
		}
		return nil
	})
}
