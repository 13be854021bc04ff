package sgd

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/trace"
)

// Two workers of two devices: when each replica began, computed, reduced and applied.
var four = []stamp{
	{100, 200, 900, 950},
	{110, 400, 900, 960},
	{105, 500, 910, 955},
	{120, 800, 920, 999},
}

func TestTimesOf(t *testing.T) {
	require.Equal(t, Times{
		Workers: []WorkerTimes{{Compute: 300, Apply: 60}, {Compute: 695, Apply: 89}},
		Compute: 700, Reduce: 120, Apply: 99,
	}, timesOf(four, 2))
	require.Equal(t, Times{Workers: []WorkerTimes{{Compute: 700, Apply: 99}}, Compute: 700, Reduce: 120, Apply: 99}, timesOf(four, 4))
	require.Len(t, timesOf(four, 1).Workers, 4)
}

// Activities of a worker follow each other without gaps.
func TestActivities(t *testing.T) {
	got := activities(four, 2, 7)
	require.Len(t, got, 6)
	require.Equal(t, trace.Activity{Worker: 1, Name: "grad reduce", Began: time.Unix(0, 800), Took: 120, Args: map[string]any{"step": 7}}, got[4])
	for i, a := range got {
		if i%3 > 0 {
			require.Equal(t, got[i-1].Began.Add(got[i-1].Took), a.Began)
		}
	}
}

// The lines are those of the verbose output in Ray's documentation, in their order.
func TestLog(t *testing.T) {
	var out strings.Builder
	l := &stageLog{w: &out}
	l.add(Times{
		Workers: []WorkerTimes{{Compute: 5760771 * time.Microsecond, Apply: 200 * time.Millisecond}, {Compute: 5785480 * time.Microsecond, Apply: 300 * time.Millisecond}},
		Compute: 6 * time.Second, Reduce: 198112 * time.Microsecond, Apply: 430 * time.Millisecond,
	})
	require.Equal(t, `compute grad interior time 5.760771
compute grad interior time 5.78548
compute all grads time 6
grad reduce time 0.198112
apply grad interior time 0.2
apply grad interior time 0.3
apply all grads time 0.43
`, out.String())
	l.add(Times{Workers: []WorkerTimes{{Compute: time.Second, Apply: time.Second}, {Compute: time.Second, Apply: time.Second}}, Compute: time.Second, Reduce: time.Second, Apply: time.Second})
	out.Reset()
	require.NoError(t, l.close())
	require.Equal(t, `compute grad interior time p50 1 p95 5.78548
compute all grads time p50 1 p95 6
grad reduce time p50 0.198112 p95 1
apply grad interior time p50 0.3 p95 1
apply all grads time p50 0.43 p95 1
`, out.String())
}

// Ray's driver averages only over several workers.
func TestLogOfOneWorker(t *testing.T) {
	var out bytes.Buffer
	l := &stageLog{w: &out}
	require.NoError(t, l.close())
	require.Empty(t, out.String(), "no steps")
	l.add(Times{Workers: make([]WorkerTimes, 1), Reduce: time.Second})
	require.NoError(t, l.close())
	require.NotContains(t, out.String(), "grad reduce")
	require.Equal(t, 8, strings.Count(out.String(), "\n"))
}

// The log of an endless training stays small, and covers the latest steps.
func TestLogIsBounded(t *testing.T) {
	var out strings.Builder
	l := &stageLog{w: &out}
	for range mostSteps {
		l.add(Times{Workers: make([]WorkerTimes, 1)})
	}
	for range mostSteps {
		l.add(Times{Workers: make([]WorkerTimes, 1), Compute: time.Second})
	}
	require.LessOrEqual(t, len(l.steps), mostSteps)
	require.NoError(t, l.close())
	require.Contains(t, out.String(), "compute all grads time p50 1 p95 1\n")
}

// broken is a writer that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestLogReportsWriteErrors(t *testing.T) {
	l := &stageLog{w: broken{}}
	l.add(Times{Workers: make([]WorkerTimes, 1)})
	require.EqualError(t, l.close(), "sgd: writing the verbose log: no space")
}

func TestQuantile(t *testing.T) {
	var times []time.Duration
	for i := range 100 {
		times = append(times, time.Duration(i+1))
	}
	for q, want := range map[float64]time.Duration{0: 1, .5: 50, .95: 95, 1: 100} {
		require.Equal(t, want, quantile(times, q))
	}
	require.Equal(t, time.Duration(1), quantile(times[:1], .95))
}
