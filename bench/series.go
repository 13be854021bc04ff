package bench

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// A series is the trials of a run in their order. It knows no processes.
type series struct {
	trials  int // of each system with each number of workers
	workers []int
	systems []string
	train   func(ctx context.Context, system string, workers int) (*TrialMeasured, error) // makes one trial
	news    io.Writer                                                                     // gets a line for each trial
}

// run makes the trials until one fails, and adds them to the report. It alternates between
// the kinds of trials, so that slow periods of the machine affect all kinds.
func (s *series) run(ctx context.Context, report *Scaling) error {
	for trial := 1; trial <= s.trials; trial++ {
		for _, n := range s.workers {
			for _, system := range s.systems {
				name := fmt.Sprintf("trial %d of %d, %s, workers %d", trial, s.trials, system, n)
				if ctx.Err() != nil {
					return &TrialError{name, context.Cause(ctx)}
				}
				measured, err := s.train(ctx, system, n)
				if err != nil {
					return &TrialError{name, err}
				}
				t := measured.Trial
				t.System, t.Trial = system, trial
				report.Params, report.Lens, report.Trials = measured.Params, measured.Lens, append(report.Trials, t)
				fmt.Fprintf(s.news, "%s: %.2f s, %.2f ms/step\n", name, t.Seconds, 1000*t.Seconds/float64(max(t.Steps, 1)))
			}
		}
	}
	return nil
}

// A TrialError names the trial that failed.
type TrialError struct {
	Trial string // such as "trial 1 of 3, allreduce, workers 2"
	Err   error  // a *crew.EndError without Err if it was stopped
}

// Error is one line.
func (e *TrialError) Error() string {
	var end *crew.EndError
	var wrong *crew.UsageError
	switch {
	case errors.As(e.Err, &end) && end.Err == nil:
		return e.Trial + ": stopped"
	case errors.As(e.Err, &end):
		return fmt.Sprintf("%s: %v", e.Trial, end.Err)
	case errors.As(e.Err, &wrong):
		return fmt.Sprintf("%s: %v", e.Trial, wrong)
	}
	return fmt.Sprintf("%s: %v", e.Trial, e.Err)
}

// Unwrap returns Err.
func (e *TrialError) Unwrap() error { return e.Err }
