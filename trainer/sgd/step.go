package sgd

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// A Result describes a step. It is the same in all processes.
type Result struct {
	Step  int     // steps done, this one included
	Loss  float64 // mean over the rows of all replicas, before the update
	Rows  int     // of all replicas
	Times Times
}

// Step takes one step: each replica computes the gradients of its rows, these are summed
// over all replicas and divided by the number of all rows, and each replica makes the same
// update. The step is all or nothing.
func (s *SGD) Step(ctx context.Context) (Result, error) {
	var report trainer.Report
	var stamps []stamp
	err := s.together(ctx, fmt.Sprintf("step %d", s.step+1), func(r *Replica) error {
		done, all, err := r.makeStep(ctx, s.step, s.size(), s.options.Seed)
		if r == s.replicas[0] {
			report, stamps = done, all
		}
		return err
	})
	if err != nil {
		return Result{}, err
	}
	s.step++
	times := timesOf(stamps, s.options.Devices)
	if s.verbose != nil {
		s.verbose.add(times)
	}
	if s.timeline != nil {
		s.timeline.Add(activities(stamps, s.options.Devices, s.step)...)
	}
	return Result{Step: s.step, Loss: report.Loss, Rows: report.Weight, Times: times}, nil
}

// makeStep is the part of one replica. It returns when each replica did what, by rank.
func (r *Replica) makeStep(ctx context.Context, step, size int, seed uint64) (report trainer.Report, all []stamp, err error) {
	var mine stamp
	clock := newClock()
	mine[began] = clock.now()
	s, err := r.learn(step, size, seed)
	if err != nil {
		return report, nil, err
	}
	mine[computed] = clock.now()
	if report, err = r.strategy.Step(ctx, r.Task.Params(), s); err != nil {
		return report, nil, err
	}
	mine[reduced] = mine[computed] + report.Exchange.Nanoseconds()
	if err := r.Backend.Sync(ctx); err != nil {
		return report, nil, err
	}
	mine[applied] = clock.now()
	flat := make([]int64, size*len(mine))
	if err := collective.AllGather(ctx, r.group, flat, mine[:]); err != nil {
		return report, nil, fmt.Errorf("gathering times: %w", err)
	}
	for ; len(flat) > 0; flat = flat[len(mine):] {
		all = append(all, stamp(flat))
	}
	return report, all, nil
}

// Warmup computes the gradients of the next step on every replica and drops them, so that
// the first step does not pay for what is set up only once. It returns how long that took.
// It changes neither weights nor state.
func (s *SGD) Warmup(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	err := s.together(ctx, "warming up", func(r *Replica) error {
		if _, err := r.learn(s.step, s.size(), s.options.Seed); err != nil {
			return err
		}
		if err := r.Backend.Sync(ctx); err != nil {
			return err
		}
		return r.group.Barrier(ctx)
	})
	return time.Since(begin), err
}

// Evaluate scores the test rows of all tasks. Each replica scores its own share.
func (s *SGD) Evaluate(ctx context.Context) (trainer.EvalEvent, error) {
	e := trainer.EvalEvent{Step: s.step}
	err := s.together(ctx, fmt.Sprintf("evaluating after step %d", s.step), func(r *Replica) error {
		own, err := trainer.Score(ctx, r.Backend, r.Task)
		if err != nil {
			return err
		}
		counts, err := r.strategy.Total(ctx, own)
		if err == nil && r == s.replicas[0] {
			e.Counts, e.Metrics = counts, r.Task.Metrics(counts)
		}
		return err
	})
	e.Loss = e.Counts[nn.CountLoss] / max(e.Counts[nn.CountRows], 1)
	return e, err
}
