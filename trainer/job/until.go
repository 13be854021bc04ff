package job

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// targetOf returns the target of Spec.Until; the zero Target without one.
func targetOf(f *Spec) trainer.Target {
	t, _ := trainer.ParseTarget(f.Until) // checkUntil has accepted it
	return t
}

// checkUntil finds what is wrong with Spec.Until by itself; checkTarget whether the task has the
// metric.
func checkUntil(f *Spec) error {
	if f.Until == "" {
		return nil
	}
	if _, err := trainer.ParseTarget(f.Until); err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	return nil
}

// checkEvaluated reports a run with Spec.Until that does not evaluate between steps.
func checkEvaluated(s *Training) error {
	_, test := s.Problem.Rows()
	switch {
	case s.Spec.Until == "":
		return nil
	case s.tests == catalog.NoTests:
		return s.errorf(whoEvaluates, "--until needs evaluations, but %s is none: leave one of them out", whoEvaluates)
	case s.evalEvery == 0:
		return s.errorf("evaluation.frequency", "--until needs evaluations between steps: set evaluation.frequency above 0")
	case test == 0:
		return errors.New("--until needs rows to evaluate, and the data has none: name some with --test-data or --holdout, or leave it out")
	}
	return checkUntil(&s.Spec)
}

// checkTarget reports, before anything starts, why no evaluation can reach Spec.Until: the task
// does not have the metric, or it is a fraction, which is never above 1. Only a task can tell.
func checkTarget(s *Training, rows catalog.Rows) error {
	t := targetOf(&s.Spec)
	if t == (trainer.Target{}) {
		return nil
	}
	backend := cpu.New(cpu.Options{})
	defer backend.Close()
	task, err := rows.Task(catalog.Seat{
		Backend: backend, Size: s.AllWorkers(), Micro: s.micro, Batch: s.Batch, EvalBatch: s.evalBatch, Seed: s.Spec.Seed, Tests: s.tests,
	})
	if err != nil {
		return nil // the workers report it, as without a target
	}
	m, err := t.MetricOf(task)
	var unknown *trainer.TargetError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("--until %s: %s", s.Spec.Until, unknown.Reason())
	case m.Fraction && t.Value > 1 && t.Value <= 100:
		return fmt.Errorf("--until %s cannot be reached: %s is at most 1; write %s=%.6g for %v %%", s.Spec.Until, m.Name, m.Name, t.Value/100, t.Value)
	case m.Fraction && t.Value > 1:
		return fmt.Errorf("--until %s cannot be reached: %s is at most 1", s.Spec.Until, m.Name)
	}
	return nil
}

// evaluationsOf returns when the trainer evaluates.
func evaluationsOf(s *Training) trainer.Evaluations {
	return trainer.Evaluations{Every: s.evalEvery, First: s.Spec.Watch.First, Until: targetOf(&s.Spec)}
}

// shareReached gives all ranks of an asynchronous strategy what rank 0 knows: whether they
// have ended because the target is reached. Survivors make no more calls. Without this, the
// others end as if they were asked to stop, which is no failure.
func shareReached(ctx context.Context, r *rank, x trainer.Reached) (trainer.Reached, error) {
	if r.training.Spec.Until == "" || !r.training.Spec.asynchronous() || r.survivors != nil {
		return x, nil
	}
	words := []int64{int64(x.Step), int64(math.Float64bits(x.Metric.Value)), int64(x.Samples), int64(x.Sent), int64(x.Elapsed)}
	if err := collective.Broadcast(ctx, r.group, words, 0); err != nil {
		return x, fmt.Errorf("sharing whether the target is reached: %w", err)
	}
	x.Step, x.Metric.Value = int(words[0]), math.Float64frombits(uint64(words[1]))
	x.Samples, x.Sent, x.Elapsed = int(words[2]), int(words[3]), time.Duration(words[4])
	return x, nil
}

// tellTarget says whether the target of Spec.Until is reached, and after how much training.
func tellTarget(r *rank, x trainer.Reached) {
	if r.training.Spec.Until == "" || !r.leader {
		return
	}
	t := targetOf(&r.training.Spec)
	r.events.Emit(&event.Target{
		Metric: t.Metric, Target: t.Value, Reached: x.Found(), Value: x.Metric.Value,
		Step: x.Step, Samples: x.Samples, Seconds: x.Elapsed.Seconds(), WireBytes: x.Sent,
	})
}
