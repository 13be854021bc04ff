package main

import (
	"context"
	"math"
	"slices"
	"time"
)

// A clock says how many steps and rounds each way is timed for.
type clock struct{ warmup, steps, rounds int }

// A way is one way of taking a step, ours or PyTorch's.
type way struct {
	name  string
	torch bool
	// run makes at least one step, and about this many, waits for them, and returns microseconds per step.
	run func(ctx context.Context, steps int) (us float64, err error)
}

// race alternates between all ways of computing, so that a disturbance of the machine affects all of them. It
// returns the median of each, or NaN for one that fails. When the context ends it stops after
// the current round.
func (c clock) race(ctx context.Context, ways []way) (us []float64, errs []error) {
	times, errs := make([][]float64, len(ways)), make([]error, len(ways))
	for round := range c.rounds + 1 {
		for i := range ways {
			at := (i + round) % len(ways) // each round begins with another way
			if errs[at] != nil {
				continue
			}
			steps := c.steps
			if round == 0 {
				steps = c.warmup
			}
			took, err := ways[at].run(ctx, steps)
			if err != nil {
				errs[at] = err
			} else if round > 0 {
				times[at] = append(times[at], took)
			}
		}
	}
	for _, t := range times {
		us = append(us, median(t))
	}
	return us, errs
}

// median returns NaN for an empty list.
func median(times []float64) float64 {
	if len(times) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(times))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// timed returns the run of one of our ways. Each call of step makes each steps, and sync waits
// for all of them.
func timed(step func() error, each int, sync func() error) func(ctx context.Context, steps int) (float64, error) {
	return func(ctx context.Context, steps int) (float64, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		calls := max(1, steps/each)
		begin := time.Now()
		for range calls {
			if err := step(); err != nil {
				return 0, err
			}
		}
		err := sync()
		return float64(time.Since(begin).Nanoseconds()) / 1e3 / float64(calls*each), err
	}
}
