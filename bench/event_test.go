package bench_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// measuredEvents has every kind of event, filled in.
func measuredEvents() []event.Event {
	return []event.Event{
		&bench.Calibrated{Report: calibration.Report{Choices: calibration.Default(2), Ranks: 2, Source: calibration.FromTrials, Lasting: true, Took: time.Millisecond}},
		&bench.RowMeasured{Row: bench.Row{Op: "allreduce", DType: collective.BFloat16, Reduction: collective.Mean, Root: -1, Ranks: 3, Size: 1 << 30, Count: 1 << 29,
			Out:  &bench.Timing{Iterations: 5, Median: 1.25, Mean: math.Pi, P99: 1e9, Read: .001, Wrong: -1},
			In:   &bench.Timing{Iterations: 6, Wrong: math.MaxInt64},
			Plan: schedule.Plan{Method: schedule.Direct, Segment: 4096, Ahead: 2, Streams: 3, Why: "because \"it\" is <small>", Predicted: time.Second}}},
		&bench.RowMeasured{Row: bench.Row{Op: "alltoall", DType: collective.Uint8, Root: -1, Ranks: 2, Size: 2, Count: 1, Out: &bench.Timing{}}},
		&bench.SizeTuned{Tuned: bench.Tuned{Bytes: 4096, Ways: []bench.Way{{Method: schedule.Ring, Segment: 65536, Measured: 1.5, Predicted: 2.5}, {Method: schedule.OneShot}}}},
		&bench.TableSaved{Path: "/tmp/a b/ü.json"},
		&bench.TrialBegins{},
		&bench.TrialMeasured{Params: 9, Locals: []int{1, 0}, Trial: handRun()[0]},
	}
}

// Measurements reach the launcher unchanged, one line each.
func TestEventsAreReadAsWritten(t *testing.T) {
	kinds := map[string]bool{}
	for _, e := range measuredEvents() {
		line := event.Encode(e)
		require.NotContains(t, string(line), "\n")
		require.Equal(t, e, event.Decode(line, bench.Events()), e.Kind())
		require.Nil(t, event.Decode(line, nil), "%s is not an event of other programs", e.Kind())
		kinds[e.Kind()] = true
	}
	require.Len(t, kinds, len(bench.Events()), "every kind is tested")
	for kind, make := range bench.Events() {
		require.Equal(t, kind, make().Kind())
	}
}

// Lines that are not events of this version are not decoded.
func TestLinesThatAreNoEvents(t *testing.T) {
	for _, line := range []string{"", "\n", "{}", "null", "[]", `{"event":"row"`, `{"event":"row","row":[]}`, `{"event":"measured","params":"many"}`, `{"event":"no such kind"}`, "panic: runtime error"} {
		require.Nil(t, event.Decode([]byte(line), bench.Events()), line)
	}
}

// Whatever a worker writes, decoding fails or gives an event that can be sent again.
func FuzzDecodeEvents(f *testing.F) {
	for _, e := range measuredEvents() {
		f.Add(event.Encode(e))
	}
	f.Add([]byte(`{"event":"row","row":{"DType":999,"Plan":{"Method":-1}}}`))
	f.Add([]byte(`{"event":"tuned_size"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e := event.Decode(line, bench.Events())
		if e == nil {
			return
		}
		again := event.Encode(e)
		require.True(t, json.Valid(again))
		require.Equal(t, e.Kind(), event.Decode(again, bench.Events()).Kind())
		require.Equal(t, again, event.Encode(event.Decode(again, bench.Events())))
	})
}
