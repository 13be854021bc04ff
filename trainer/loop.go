package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ringtrain/ringtrain/nn"
)

// loop is a Train in progress: steps, and what happens between them.
type loop struct {
	Config
	params *nn.Params
	place  Place
	begin  time.Time
	result Result
	tested bool // the current values have been evaluated
	saved  int  // steps done at the last snapshot
}

// A stepper takes the steps of a loop: plain computes them one by one, recorder
// launches recordings of them.
type stepper interface {
	// advance makes at least one step from first on, and none from limit on, and
	// returns how many steps are now begun. All of them are done if that is limit or
	// if training stops; otherwise the device may still be at work.
	advance(ctx context.Context, first, limit int) (begun int, stopped bool, err error)
}

func (l *loop) run(ctx context.Context) error {
	steps, err := l.stepper()
	if err != nil {
		return err
	}
	if err := l.evaluateAgain(ctx); err != nil {
		return err
	}
	stopped := false
	for step := l.place.Step; step < l.Steps && !stopped && !l.ends(); {
		before := step
		if step, stopped, err = steps.advance(ctx, before, l.pause(before)); err != nil {
			return err
		}
		l.tested = false
		if l.evaluates(before, step) {
			if err := l.evaluate(ctx); err != nil {
				return err
			}
		}
		if l.saves(before, step) && !stopped && !l.ends() && step < l.Steps {
			if err := l.save(ctx, false); err != nil {
				return err
			}
		}
	}
	return l.end(ctx, stopped)
}

func (l *loop) stepper() (stepper, error) {
	if l.Recording != nil {
		return newRecorder(l)
	}
	return &plain{loop: l, micro: newMicroBatches(l.Config, l.params)}, nil
}

// pause returns after how many steps, more than begun, the loop next evaluates,
// saves or ends.
func (l *loop) pause(begun int) int {
	steps := l.Steps
	if l.SaveEvery > 0 {
		steps = min(steps, (begun/l.SaveEvery+1)*l.SaveEvery)
	}
	if l.Eval.Every > 0 {
		steps = min(steps, l.Eval.first()+l.Eval.within(begun)*l.Eval.Every)
	}
	return steps
}

// end is what comes after the last step.
func (l *loop) end(ctx context.Context, stopped bool) error {
	stopped = stopped && !l.result.Reached.Found() // then training is done
	if !stopped && !l.tested {
		if err := l.evaluate(ctx); err != nil {
			return err
		}
	}
	if err := l.Strategy.Finish(ctx, l.params); err != nil {
		return err
	}
	err := l.save(ctx, true)
	var unsaved *SaveError
	switch {
	case !stopped:
		return err
	case err == nil:
		return ErrStopped
	case errors.As(err, &unsaved):
		return errors.Join(ErrStopped, err)
	}
	return err
}

// count adds a step to the result.
func (l *loop) count(step int, r Report) {
	l.result.Steps, l.result.Loss = step+1, r.Loss
	if l.agreed(step+1) == step+1 {
		l.result.Samples += r.Weight
	}
	l.result.Sent, l.result.Plain = l.result.Sent+r.Sent, l.result.Plain+r.Plain
	if r.AsRows > 0 {
		l.result.AsRows++
	}
}

func (l *loop) wishesToStop() bool {
	if l.result.Reached.Found() {
		return true
	}
	select {
	case <-l.Stop: // nil is never ready
		return true
	default:
		return false
	}
}

// evaluates reports whether to evaluate after this many steps: whether a regular evaluation has
// become due after step before or, with a Periodic, since the ranks last agreed.
func (l *loop) evaluates(before, steps int) bool {
	return l.Eval.Every > 0 && l.agreed(steps) == steps && l.Eval.within(steps) > l.Eval.within(l.agreed(before))
}

func (l *loop) evaluate(ctx context.Context) error {
	steps := l.result.Steps
	l.tested = true
	counts, err := Score(ctx, l.Backend, l.Task)
	if err == nil && len(counts) == 0 {
		return nil // no rank has test rows
	}
	if err == nil {
		if t, ok := l.Task.(Tracked); ok {
			t.Track(counts)
		}
		counts, err = l.Strategy.Total(ctx, counts)
	}
	if err != nil {
		return fmt.Errorf("trainer: evaluating after step %d: %w", steps, err)
	}
	if loss := counts[nn.CountLoss]; math.IsNaN(loss) || math.IsInf(loss, 0) {
		ranks := ranksOf(l.place.View) // all of them: they hold the same values
		return &NotFiniteError{What: "test loss after", Step: steps, Value: brokenValue(l.params), Ranks: ranks, Names: names(l.place.View, ranks)}
	}
	e := EvalEvent{Step: steps, Counts: counts, Loss: counts[nn.CountLoss] / max(counts[nn.CountRows], 1), Metrics: l.Task.Metrics(counts), Elapsed: time.Since(l.begin)}
	if err := finiteMetrics(e.Metrics); err != nil {
		return fmt.Errorf("trainer: evaluating after step %d: %w", steps, err)
	}
	if e.Best, err = l.compare(ctx, e); err != nil {
		return fmt.Errorf("trainer: evaluating after step %d: %w", steps, err)
	}
	l.result.Final = e
	l.reach(e)
	if l.Observer != nil {
		l.Observer.Evaluated(e)
	}
	return nil
}
