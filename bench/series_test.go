package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// fakeTrials are trials that compute nothing and take virtual time.
type fakeTrials struct {
	made  []string                 // such as "allreduce 2"
	takes map[string]time.Duration // by what it makes; a second for others
	fails map[string]error
}

// train is a series' train.
func (f *fakeTrials) train(ctx context.Context, system string, workers int) (*TrialMeasured, error) {
	name := fmt.Sprint(system, " ", workers)
	f.made = append(f.made, name)
	takes, known := f.takes[name]
	if !known {
		takes = time.Second
	}
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := f.fails[name]; err != nil {
		return nil, err
	}
	return &TrialMeasured{Params: 1000 + len(f.made), Trial: Trial{Workers: workers, Steps: 10, Seconds: takes.Seconds()}}, nil
}

// run makes the trials of two systems with 1 and 3 workers, and returns the report, the
// lines for the user, the time that it took and the error.
func (f *fakeTrials) run(ctx context.Context, trials int) (report Scaling, news string, took time.Duration, err error) {
	var out bytes.Buffer
	begin := time.Now()
	s := series{trials: trials, workers: []int{1, 3}, systems: []string{"allreduce", "gossip"}, train: f.train, news: &out}
	err = s.run(ctx, &report)
	return report, out.String(), time.Since(begin), err
}

// Every kind of trial has its turn before any has a second one.
func TestSeriesAlternates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTrials{takes: map[string]time.Duration{"gossip 3": 2500 * time.Millisecond}}
		report, news, took, err := f.run(t.Context(), 2)
		require.NoError(t, err)
		round := []string{"allreduce 1", "gossip 1", "allreduce 3", "gossip 3"}
		require.Equal(t, append(round, round...), f.made)
		require.Equal(t, 11*time.Second, took, "one at a time")
		require.Equal(t, `trial 1 of 2, allreduce, workers 1: 1.00 s, 100.00 ms/step
trial 1 of 2, gossip, workers 1: 1.00 s, 100.00 ms/step
trial 1 of 2, allreduce, workers 3: 1.00 s, 100.00 ms/step
trial 1 of 2, gossip, workers 3: 2.50 s, 250.00 ms/step
trial 2 of 2, allreduce, workers 1: 1.00 s, 100.00 ms/step
trial 2 of 2, gossip, workers 1: 1.00 s, 100.00 ms/step
trial 2 of 2, allreduce, workers 3: 1.00 s, 100.00 ms/step
trial 2 of 2, gossip, workers 3: 2.50 s, 250.00 ms/step
`, news)
		require.Len(t, report.Trials, 8)
		for i, trial := range report.Trials {
			require.Equal(t, 1+i/4, trial.Trial)
			require.Equal(t, round[i%4], fmt.Sprint(trial.System, " ", trial.Workers))
		}
		require.Equal(t, 1008, report.Params, "of the last trial")
	})
}

// A trial that fails ends the series and is named. Those before it were reported, and none
// follows.
func TestSeriesEndsAtAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("worker 2 (pid 7) was killed by signal 9 (killed)")
		f := &fakeTrials{fails: map[string]error{"allreduce 3": &crew.EndError{Err: cause, Begun: true}}}
		report, news, _, err := f.run(t.Context(), 3)
		require.EqualError(t, err, "trial 1 of 3, allreduce, workers 3: worker 2 (pid 7) was killed by signal 9 (killed)")
		require.ErrorIs(t, err, cause)
		var trial *TrialError
		require.ErrorAs(t, err, &trial)
		require.Equal(t, "trial 1 of 3, allreduce, workers 3", trial.Trial)
		require.Equal(t, []string{"allreduce 1", "gossip 1", "allreduce 3"}, f.made)
		require.Len(t, report.Trials, 2)
		require.Equal(t, "trial 1 of 3, allreduce, workers 1: 1.00 s, 100.00 ms/step\ntrial 1 of 3, gossip, workers 1: 1.00 s, 100.00 ms/step\n", news)
	})
}

// A series that is cancelled ends in the middle of a trial, at that moment.
func TestSeriesIsCancelled(t *testing.T) {
	why := errors.New("the machine is needed")
	for after, want := range map[time.Duration]string{
		0:                       "trial 1 of 2, allreduce, workers 1: the machine is needed",
		2500 * time.Millisecond: "trial 1 of 2, allreduce, workers 3: the machine is needed",
		7001 * time.Millisecond: "trial 2 of 2, gossip, workers 3: the machine is needed",
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			timer := time.AfterFunc(after, func() { cancel(why) })
			defer timer.Stop()
			f := &fakeTrials{}
			report, _, took, err := f.run(ctx, 2)
			require.EqualError(t, err, want)
			require.ErrorIs(t, err, why)
			require.Equal(t, after, took)
			require.Len(t, report.Trials, int(after/time.Second))
			require.Len(t, f.made, len(report.Trials)+1)
		})
	}
}

// A series that is cancelled between two trials does not begin the next one.
func TestSeriesIsCancelledBetweenTrials(t *testing.T) {
	why := errors.New("the machine is needed")
	ctx, cancel := context.WithCancelCause(t.Context())
	made := 0
	var report Scaling
	s := series{trials: 1, workers: []int{1, 2, 3}, systems: []string{"allreduce"}, news: io.Discard, train: func(context.Context, string, int) (*TrialMeasured, error) {
		if made++; made == 2 {
			cancel(why)
		}
		return &TrialMeasured{}, nil
	}}
	err := s.run(ctx, &report)
	require.EqualError(t, err, "trial 1 of 1, allreduce, workers 3: the machine is needed")
	require.ErrorIs(t, err, why)
	require.Equal(t, 2, made)
	require.Len(t, report.Trials, 2)
}

// A trial without steps has a line without infinities.
func TestSeriesWithoutSteps(t *testing.T) {
	var out bytes.Buffer
	s := series{trials: 1, workers: []int{1}, systems: []string{"allreduce"}, news: &out, train: func(context.Context, string, int) (*TrialMeasured, error) {
		return &TrialMeasured{Trial: Trial{Seconds: .5}}, nil
	}}
	require.NoError(t, s.run(t.Context(), &Scaling{}))
	require.Equal(t, "trial 1 of 1, allreduce, workers 1: 0.50 s, 500.00 ms/step\n", out.String())
	s.trials, s.train = 0, nil
	require.NoError(t, s.run(t.Context(), &Scaling{}), "nothing to do")
}
