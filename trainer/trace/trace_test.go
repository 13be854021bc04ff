package trace_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/trace"
)

// The record of a waiting rank shows the wait as a line, as JSON and as a file.
func TestRecord(t *testing.T) {
	groups := collectivetest.Local(t, 2)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		for range 70 {
			assert.NoError(t, collective.AllReduce(ctx, g, make([]float32, 10), collective.Sum))
		}
		if g.Rank() == 0 {
			g.Mark(7)
			assert.NoError(t, g.Barrier(ctx))
			return
		}
		var r trace.Record
		assert.Eventually(t, func() bool {
			r = trace.NewRecord(groups[0].Flight())
			return r.Waiting != nil && r.Waiting.ForMs > 5
		}, 20*time.Second, time.Millisecond)
		if assert.NotNil(t, r.InProgress()) {
			assert.Equal(t, "Barrier()", r.InProgress().Call)
			assert.Equal(t, []trace.Wait{{Rank: 1, LateMs: r.Waiting.ForMs}}, r.InProgress().Waits)
		}
		assert.Equal(t, 1, r.Waiting.Rank)
		assert.Equal(t, "late to call", r.Waiting.Cause)
		assert.Regexp(t, `^rank 0 \(local/0\) at step 7: Barrier\(\) #71 in progress for .* ms; it waited for rank 1: .* ms late to call, 0 slow to move$`, r.Summary())

		path := filepath.Join(t.TempDir(), "flight.json")
		assert.NoError(t, r.Save(path))
		text, err := os.ReadFile(path)
		assert.NoError(t, err)
		var again trace.Record
		assert.NoError(t, json.Unmarshal(text, &again))
		assert.Len(t, again.Calls, collective.FlightCalls)
		assert.Equal(t, r.Calls[0].Seq, again.Calls[0].Seq)

		small, err := r.Encode(2000)
		assert.NoError(t, err)
		assert.LessOrEqual(t, len(small), 2000)
		var less trace.Record
		assert.NoError(t, json.Unmarshal(small, &less))
		assert.NotEmpty(t, less.Calls)
		assert.Equal(t, "Barrier()", less.Calls[len(less.Calls)-1].Call, "the oldest calls are omitted")
		assert.Len(t, r.Calls, collective.FlightCalls, "the record itself does not change")
		assert.NoError(t, g.Barrier(ctx))
	})
	empty := trace.NewRecord(collectivetest.Local(t, 1)[0].Flight())
	require.Equal(t, "rank 0 (local/0) has made no call", empty.Summary())
	require.ErrorContains(t, empty.Save(filepath.Join(t.TempDir(), "no", "such", "dir")), "writing the flight record")
}

// tap is the interface that Chrome and Metrics implement.
type tap interface {
	collective.FlightObserver
	trainer.Observer
}

// observe sends a tap a call that waited, a call that failed, a step and an evaluation.
func observe(o tap) {
	o.Recorded(&collective.FlightCall{
		Call: collective.Call{Kind: collective.KindAllReduce, DType: collective.Float32, Op: collective.Sum, Count: 10},
		Seq:  3, Step: 2, Began: time.Unix(100, 0), Took: 2 * time.Second, Done: true,
		Waits: []collective.Wait{{Rank: 1, Late: time.Second, Slow: time.Second / 2}},
	})
	o.Recorded(&collective.FlightCall{Call: collective.Call{Kind: collective.KindBarrier}, Seq: 4, Done: true, Err: errors.New("gone")})
	o.Stepped(trainer.StepEvent{Step: 2, Compute: time.Second, Report: trainer.Report{Loss: math.NaN(), Weight: 5, Sent: 70, AsRows: 2, Exchange: 2 * time.Second, Update: time.Second}})
	o.Evaluated(trainer.EvalEvent{Step: 2, Metrics: []trainer.Metric{{Name: "accuracy", Value: .5}}, Loss: 1})
}

// The file is valid after every flush, as after a kill.
func TestChrome(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	require.NoError(t, err)
	defer file.Close()
	read := func() (events []map[string]any) {
		text, err := os.ReadFile(file.Name())
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &events), "%s", text)
		return events
	}
	c := trace.NewChrome(file, 4, "a/4")
	require.Len(t, read(), 4, "names")
	observe(c)
	require.Len(t, read(), 7, "a step is flushed")
	for range 100 {
		observe(c)
		require.NotEmpty(t, read())
	}
	require.NoError(t, c.Close())
	events := read()
	require.Len(t, events, 4+101*4)
	by := map[string]map[string]any{}
	for _, e := range events {
		require.Equal(t, 4., e["pid"])
		by[e["name"].(string)] = e
	}
	require.Equal(t, map[string]any{
		"name": "AllReduce", "ph": "X", "pid": 4., "tid": 1., "ts": 100e6, "dur": 2e6,
		"args": map[string]any{"call": "AllReduce(float32[10], sum)", "seq": 3., "step": 2., "bytes": 40., "rank 1 late to call, ms": 1000., "rank 1 slow to move, ms": 500.},
	}, by["AllReduce"])
	require.Equal(t, "gone", by["Barrier"]["args"].(map[string]any)["error"])
	require.Equal(t, 4e6, by["step"]["dur"])
	require.Equal(t, "NaN", by["step"]["args"].(map[string]any)["loss"])
	require.Equal(t, 70., by["step"]["args"].(map[string]any)["gradients sent, bytes"])
	require.Equal(t, 2., by["step"]["args"].(map[string]any)["tables sent as rows"])
	require.Equal(t, .5, by["evaluated"]["args"].(map[string]any)["accuracy"])
	require.Equal(t, "rank 4 (a/4)", by["process_name"]["args"].(map[string]any)["name"])
}

// full is a disk without space.
type full struct{}

func (full) WriteAt([]byte, int64) (int, error) { return 0, errors.New("no space") }

func TestChromeReportsWriteErrors(t *testing.T) {
	c := trace.NewChrome(full{}, 0, "a/0")
	observe(c)
	require.ErrorContains(t, c.Close(), "no space")
}

func TestMetrics(t *testing.T) {
	m := trace.NewMetrics(4)
	observe(m)
	answer := httptest.NewRecorder()
	m.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, answer.Code)
	for _, want := range []string{
		`ringtrain_calls_total{kind="AllReduce",rank="4"} 1`,
		`ringtrain_call_bytes_total{kind="AllReduce",rank="4"} 40`,
		`ringtrain_call_bytes_total{kind="Barrier",rank="4"} 0`,
		`ringtrain_call_seconds_total{kind="AllReduce",rank="4"} 2`,
		`ringtrain_call_failures_total{kind="Barrier",rank="4"} 1`,
		`ringtrain_wait_seconds_total{cause="late_to_call",peer="1",rank="4"} 1`,
		`ringtrain_wait_seconds_total{cause="slow_to_move",peer="1",rank="4"} 0.5`,
		`ringtrain_steps_total{rank="4"} 1`,
		`ringtrain_rows_total{rank="4"} 5`,
		`ringtrain_loss{rank="4"} NaN`,
		`ringtrain_accuracy{rank="4"} 0.5`,
		`ringtrain_step_seconds_sum{rank="4"} 4`,
		`ringtrain_step_stage_seconds_total{rank="4",stage="exchange"} 2`,
	} {
		require.Contains(t, answer.Body.String(), want+"\n")
	}
}
