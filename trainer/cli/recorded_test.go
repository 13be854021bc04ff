package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/query"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/job/status"
	"github.com/ringtrain/ringtrain/trainer/trace"
)

// screenEquals compares text with testdata/NAME. Set UPDATE_SCREENS=1 to write it.
func screenEquals(t *testing.T, name, text string) {
	path := "testdata/" + name
	if os.Getenv("UPDATE_SCREENS") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "if on purpose, UPDATE_SCREENS=1 and read the diff")
}

// recorded returns the events of a job in which most kinds of events happen.
func recorded() []event.Event {
	return []event.Event{
		&event.View{Epoch: 1, Job: "00000000000000ab", Device: "the CPU", Members: []event.Member{{Name: "a/0", Node: "a"}, {Name: "b/0", Node: "b"}, {Name: "a/1", Node: "a"}}},
		&event.Tuned{Path: "/cache/tune-1.json", Sizes: 12},
		&event.Resumed{Path: "run/step-00000010.safetensors", Step: 10},
		&event.Step{Step: 11, Loss: 0.5, Samples: 96, Seconds: 0.5, ComputeMs: 60, ExchangeMs: 30, UpdateMs: 10, WireBytes: 500_000},
		&event.Step{Step: 12, Loss: 0.25, Samples: 96, Seconds: 1, ComputeMs: 80, ExchangeMs: 10, UpdateMs: 10, WireBytes: 500_000},
		&event.Eval{Step: 12, Metrics: event.Metrics{{Name: "accuracy", Value: 0.875}}, Best: true, Loss: 0.4, Seconds: 2},
		&event.CheckpointFailed{Path: "run/step-00000012.safetensors", Step: 12, Error: "write run: no space left on device"},
		&event.Step{Step: 13, Loss: 0.125, Samples: 96, Seconds: 3, ComputeMs: 100, WireBytes: 500_000},
		&event.Eval{Step: 13, Metrics: event.Metrics{{Name: "accuracy", Value: 0.85}}, Loss: 0.35, Seconds: 4},
		&event.SaveRetry{Path: "run/step-00000013.safetensors", Step: 13, Error: "write run: no space left on device", Full: true, Until: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		&event.CheckpointFailed{Path: "run/step-00000013.safetensors", Step: 13, Error: "no space", Last: true},
		&event.Checkpoint{Path: "spare/step-00000013.safetensors", Step: 13, InsteadOf: "run/step-00000013.safetensors"},
		&event.Weights{Path: "run/model.safetensors", Step: 13},
		&event.Weights{Path: "run/model-best.safetensors", Step: 12, Best: true},
		&event.Result{Metrics: event.Metrics{{Name: "accuracy", Value: 0.85}}, BestStep: 12, BestMetric: "accuracy", BestValue: 0.875, Loss: 0.35, Steps: 13, Workers: 3, Seconds: 4, SamplesPerSecond: 72, WeightsSHA256: "abc", BLAS: "ringtrain fma256", Plan: "ring among 3 ranks", Compress: "bf16", WireBytes: 1_500_000, CompressionRatio: 2},
	}
}

// The table of a recorded job, and the news on stderr.
func TestRecordedScreen(t *testing.T) {
	var out, news bytes.Buffer
	s := &screen{out: &out, err: &news, steps: 13}
	for _, e := range recorded() {
		s.Emit(e)
	}
	s.Log("worker 1", []byte("a line of its own"))
	s.Notice("stopping after this step")
	screenEquals(t, "recorded.txt", out.String()+"-- stderr --\n"+news.String())
}

// With --json every event is a line on stdout, and stderr is empty.
func TestRecordedJSON(t *testing.T) {
	var out, news bytes.Buffer
	s := &screen{out: &out, err: &news, steps: 13, json: event.NewWriter(&out, 0)}
	for _, e := range recorded() {
		s.Emit(e)
	}
	require.Empty(t, news.String())
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, len(recorded()))
	for i, e := range recorded() {
		require.Equal(t, e, event.Decode([]byte(lines[i]), nil))
	}
	s.Emit(&event.Resumed{Path: "run/step-00000013.safetensors", Step: 13})
	require.Contains(t, news.String(), "nothing left to do: all 13 steps are done", "on stderr too, for users who do not read the JSON")
}

// The other ways a job can end.
func TestScreenOfOtherEnds(t *testing.T) {
	for _, c := range []struct {
		e         event.Event
		out, news string
	}{
		{&event.Stopped{Steps: 5}, "", "stopped after 5 steps\n"},
		{&event.Resumed{Path: "p", Step: 20}, "", "nothing left to do: all 20 steps are done (p); to train longer, raise --steps, for example --steps 40\n"},
		{&event.Eval{Step: 20, Metrics: event.Metrics{{Name: "accuracy", Value: 1}}}, "", ""},
		{&event.Result{Metrics: event.Metrics{{Name: "accuracy", Value: 0.5}}, Steps: 20, Workers: 1, WeightsSHA256: "abc", BLAS: "ringtrain fma256", Plan: "alone", Compress: "none"}, "\naccuracy 0.5000 after 20 steps\nweights sha256 abc\nmatrix products: ringtrain fma256\nexchange: none (1 worker)\n", ""},
		{&event.Lost{Rank: 2, Node: "vm/2", Op: "Message", Phase: "receive", Error: "gone"}, "", ""},
		{&event.Lost{Rank: 2, Node: "vm/2", Op: "Message", Phase: "receive", Error: "gone", Left: 3}, "", "warning: rank 0 lost rank 2 (vm/2) in Message (receive) after 0.0 ms: gone; 3 workers continue\n"},
		{&event.Result{Metrics: event.Metrics{{Name: "accuracy", Value: 0.5}}, Steps: 20, Workers: 4, Left: 3, Seconds: 2, SamplesPerSecond: 10, WeightsSHA256: "abc", BLAS: "ringtrain fma256", Plan: "p", Compress: "none"},
			"\naccuracy 0.5000 after 20 steps with 4 workers (3 at the end) in 2.0 s (10 samples/s)\nweights sha256 abc\nmatrix products: ringtrain fma256\nexchange: p\n", ""},
		{&event.Result{Metrics: event.Metrics{{Name: "accuracy", Value: 0.5}}, Steps: 20, Workers: 1, Seconds: 2, SamplesPerSecond: 10, WeightsSHA256: "abc", BLAS: "ringtrain fma256", Plan: "alone", Compress: "none"},
			"\naccuracy 0.5000 after 20 steps with 1 worker in 2.0 s (10 samples/s)\nweights sha256 abc\nmatrix products: ringtrain fma256\nexchange: none (1 worker)\n", ""},
		{&event.Progress{}, "", ""},
	} {
		var out, news bytes.Buffer
		(&screen{out: &out, err: &news, steps: 20}).Emit(c.e)
		require.Equal(t, c.out, out.String(), "%T", c.e)
		require.Equal(t, c.news, news.String(), "%T", c.e)
	}
}

// A job that hangs, as status and members show it.
func TestRecordedStatus(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	reduce := trace.Call{Call: "AllReduce(float32[10], sum)", Seq: 7, Step: 3, Began: began, TookMs: 12_345}
	barrier := trace.Call{Call: "Barrier()", Seq: 6, Step: 2, Began: began, TookMs: 0.25, Done: true, Waits: []trace.Wait{{Rank: 1, LateMs: 1500, SlowMs: 2}}, Error: "lost"}
	s := &status.Status{Job: "00000000000000ab", Epoch: 2, Size: 4, Step: 3, Ranks: []status.Rank{
		{Rank: 0, Name: "a/0", Step: 3, Call: &reduce, Waiting: &trace.Waiting{Rank: 1, Cause: "late to call", ForMs: 12_000}, Record: &trace.Record{}, Calls: []trace.Call{barrier, reduce}},
		{Rank: 1, Name: "a/1", Step: 2, Record: &trace.Record{}, Skew: trace.Skew{LateMs: 2500, SlowMs: 3, Calls: 2}},
		{Rank: 2, Name: "b/0", Silent: "it has no group yet"},
		{Rank: 3, Name: "b/1", Silent: "stopped: process 7 is suspended; kill -CONT 7 resumes it", Stopped: true, PID: 7},
	}, Chain: &trace.Chain{Ranks: []int{0, 1}, Why: "it has made no call yet"}}
	var text bytes.Buffer
	require.NoError(t, writeStatus(&text, s))
	text.WriteString("-- no view --\n")
	require.NoError(t, writeStatus(&text, &status.Status{}))
	zero, one := 0, 1
	text.WriteString("-- members --\n")
	require.NoError(t, writeRoll(&text, query.Roll{Job: "00000000000000ab", Epoch: 2, Size: 2, Members: []query.Member{
		{Rank: &zero, Name: "a/0", Node: "a", Role: "worker", Addrs: []string{"10.0.0.1:7", "[fd00::1]:7"}, Alive: true},
		{Rank: &one, Name: "a/1", Node: "a", Local: 1, Role: "worker", Stopped: true},
		{Name: "c/0", Node: "c", Role: "watcher", Addrs: []string{"10.0.0.3:7"}},
	}}))
	screenEquals(t, "status.txt", text.String())
}

func TestKeepCalls(t *testing.T) {
	calls := []trace.Call{{Seq: 1}, {Seq: 2}, {Seq: 3}}
	for most, want := range map[int][]trace.Call{0: nil, 2: calls[1:], 3: calls, 9: calls} {
		s := &status.Status{Ranks: []status.Rank{{Record: &trace.Record{Calls: calls}}, {}}}
		keepCalls(s, most)
		require.Equal(t, want, s.Ranks[0].Calls)
		require.Empty(t, s.Ranks[1].Calls)
	}
}

// Doctor's screen for a machine and for checks.
func TestRecordedChecks(t *testing.T) {
	var text bytes.Buffer
	writeChecks(&text, []query.Check{{Name: "tcp a:1", OK: true, Detail: "0.1 ms"}, {Name: "udp a:1", Detail: "no answer", Do: "open the port in the firewall"}})
	require.Equal(t, "ok        tcp a:1: 0.1 ms\nFAILED    udp a:1: no answer; open the port in the firewall\n", text.String())
}
