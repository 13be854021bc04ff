package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ringtrain/ringtrain/nn"
)

// loop is a Train in progress.
type loop struct {
	Config
	params *nn.Params
	place  Place
	micro  *micro
	begin  time.Time
	result Result
	tested bool // the values were evaluated as they are
	saved  int  // steps of the last snapshot
}

func newLoop(c Config, p *nn.Params, at Place) *loop {
	return &loop{Config: c, params: p, place: at, micro: newMicro(c, p), saved: at.Step, result: Result{Steps: at.Step}}
}

func (l *loop) run(ctx context.Context) error {
	if l.Recording != nil {
		r, err := newRecorder(l)
		if err != nil {
			return err
		}
		return r.run(ctx)
	}
	stopped := false
	for step := l.place.Step; step < l.Steps && !stopped; step++ {
		report, err := l.step(ctx, step)
		if err != nil {
			return err
		}
		stopped = report.Stop
		l.tested = false
		if l.evaluates(step + 1) {
			if err := l.evaluate(ctx); err != nil {
				return err
			}
		}
		if l.due(step+1) && !stopped && step+1 < l.Steps {
			if err := l.save(ctx, false); err != nil {
				return err
			}
		}
	}
	return l.end(ctx, stopped)
}

// end is what comes after the last step.
func (l *loop) end(ctx context.Context, stopped bool) error {
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

func (l *loop) step(ctx context.Context, step int) (Report, error) {
	begin := time.Now()
	s, err := l.learn(ctx, Step{Index: step, Late: l.due(step), Stop: l.wishesToStop(), Undivided: l.Accumulate || l.Reduce == ReduceSum})
	if err != nil {
		return Report{}, err
	}
	compute := time.Since(begin)
	report, err := l.Strategy.Step(ctx, l.params, s)
	if err != nil {
		return report, err
	}
	l.count(step, report)
	if l.Observer != nil {
		l.Observer.Stepped(StepEvent{Report: report, Step: step + 1, Compute: compute, Elapsed: time.Since(l.begin)})
	}
	return report, nil
}

// count adds a step to the result.
func (l *loop) count(step int, r Report) {
	l.result.Steps, l.result.Loss = step+1, r.Loss
	l.result.Samples += r.Weight
	l.result.Sent, l.result.Plain = l.result.Sent+r.Sent, l.result.Plain+r.Plain
}

func (l *loop) wishesToStop() bool {
	select {
	case <-l.Stop: // nil is never ready
		return true
	default:
		return false
	}
}

// evaluates reports whether to evaluate after so many steps, but for the end.
func (l *loop) evaluates(steps int) bool { return l.EvalEvery > 0 && steps%l.EvalEvery == 0 }

func (l *loop) evaluate(ctx context.Context) error {
	steps := l.result.Steps
	l.tested = true
	if l.Test == nil {
		return nil
	}
	counts, err := Score(ctx, l.Backend, l.Model, l.Test)
	if err == nil {
		counts, err = l.Strategy.Total(ctx, counts)
	}
	if err != nil {
		return fmt.Errorf("trainer: evaluating after step %d: %w", steps, err)
	}
	if loss := counts[nn.CountLoss]; math.IsNaN(loss) || math.IsInf(loss, 0) {
		ranks := ranksOf(l.place.View) // all of them: they hold the same values
		return &NotFiniteError{What: "test loss after", Step: steps, Value: brokenValue(l.params), Ranks: ranks, Names: names(l.place.View, ranks)}
	}
	rows := max(counts[nn.CountRows], 1)
	e := EvalEvent{Step: steps, Counts: counts, Accuracy: counts[nn.CountCorrect] / rows, Loss: counts[nn.CountLoss] / rows, Elapsed: time.Since(l.begin)}
	l.result.Final = e
	if l.Observer != nil {
		l.Observer.Evaluated(e)
	}
	return nil
}
