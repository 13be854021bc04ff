package main

import "time"

// A clock says how often something is timed.
type clock struct{ warmup, steps, rounds int }

// measure is the least mean time of a step, over the rounds, in microseconds: as
// baselines.py measures. run makes some steps at once and sync waits for all.
func (c clock) measure(run, sync func() error, each int) (us float64, err error) {
	calls := max(1, c.steps/each)
	round := func(calls int) (time.Duration, error) {
		begin := time.Now()
		for range calls {
			if err := run(); err != nil {
				return 0, err
			}
		}
		err := sync()
		return time.Since(begin), err
	}
	if _, err := round(max(1, c.warmup/each)); err != nil {
		return 0, err
	}
	for i := range c.rounds {
		took, err := round(calls)
		if err != nil {
			return 0, err
		}
		if mean := float64(took.Nanoseconds()) / 1e3 / float64(calls*each); i == 0 || mean < us {
			us = mean
		}
	}
	return us, nil
}
