package crew

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// What a worker that ends reports to its launcher depends on whether it was asked to stop,
// and on how far it had come.
func TestReport(t *testing.T) {
	full := errors.New("disk full")
	for _, c := range []struct {
		name                    string
		err                     error
		asked, formed, training bool
		twice                   bool
		want                    *event.Failed // nil: the worker does not fail
	}{
		{name: "done", formed: true, training: true},
		{name: "failed while it joined", err: full, want: &event.Failed{Code: 1, Error: "disk full"}},
		{name: "failed in a step", err: full, formed: true, training: true, want: &event.Failed{Code: 1, Error: "disk full"}},
		{name: "mistake", err: Usage(full), want: &event.Failed{Code: 2, Error: "disk full"}},
		{name: "settings differ", err: &trainer.SettingsError{}, formed: true, want: &event.Failed{Code: 2, Error: (&trainer.SettingsError{}).Error()}},
		{name: "stopped", err: fmt.Errorf("step 7: %w", trainer.ErrStopped), asked: true, formed: true, training: true},
		{name: "stopped elsewhere", err: trainer.ErrStopped, formed: true, training: true},
		{name: "asked before the job formed", err: context.Canceled, asked: true, want: &event.Failed{Code: 1, Error: ErrEarly.Error(), Early: true}},
		{name: "asked, and done before the job formed", asked: true, want: &event.Failed{Code: 1, Error: ErrEarly.Error(), Early: true}},
		{name: "asked before the first step", err: full, asked: true, formed: true},
		{name: "failed after it was asked", err: full, asked: true, formed: true, training: true, want: &event.Failed{Code: 1, Error: "disk full"}},
		{name: "failed after it was asked twice", err: full, asked: true, formed: true, training: true, twice: true, want: &event.Failed{Code: 1, Error: "disk full"}},
		{name: "ended at once", err: fmt.Errorf("step 7: %w", context.Canceled), formed: true, training: true, twice: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			stop, ask := context.WithCancel(t.Context())
			defer ask()
			if c.asked {
				ask()
			}
			quit, force := context.WithCancel(t.Context())
			defer force()
			if c.twice {
				force()
			}
			reported := &heard{}
			w := &Worker{Place: cluster.Config{Node: "vm", Local: 3}, Events: reported, stop: stop, quit: quit}
			w.formed.Store(c.formed)
			w.training.Store(c.training)
			err := w.report(c.err)
			if c.want == nil {
				require.NoError(t, err)
				require.Empty(t, reported.events)
				return
			}
			c.want.Name = "vm/3"
			require.Equal(t, []event.Event{c.want}, reported.events)
			require.Equal(t, &EndError{Usage: c.want.Code == 2, Begun: c.training}, err, "its launcher has the text")
		})
	}
}

// A process with the variables of a worker but without its lifeline does not work, because
// it would outlive its launcher.
func TestLifelineIsMissing(t *testing.T) {
	t.Setenv(launch.EnvLifeline, "none")
	var stdout bytes.Buffer
	err := runWorker(t.Context(), cluster.Config{}, Part{Stdout: &stdout, Work: func(context.Context, *Worker) error {
		t.Error("the work began")
		return nil
	}})
	require.ErrorAs(t, err, new(*UsageError))
	require.ErrorContains(t, err, launch.EnvLifeline)
	require.Empty(t, stdout.String())
}

// The end of a worker's context ends it as a signal does, and what it holds back is
// written.
func TestRunWorker(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	var stdout bytes.Buffer
	err := runWorker(ctx, cluster.Config{Node: "vm"}, Part{Stdout: &stdout, Work: func(ctx context.Context, w *Worker) error {
		w.Events.Emit(&event.Step{Step: 1})
		require.NoError(t, w.Stop().Err())
		end()
		require.ErrorIs(t, w.Stop().Err(), context.Canceled)
		require.ErrorIs(t, w.Quit().Err(), context.Canceled)
		return ctx.Err()
	}})
	require.Equal(t, &EndError{}, err)
	var events []event.Event
	for line := range bytes.Lines(stdout.Bytes()) {
		e := event.Decode(line, nil)
		if _, progress := e.(*event.Progress); !progress { // none or one, after the signal
			events = append(events, e)
		}
	}
	require.Equal(t, []event.Event{&event.Step{Step: 1}, &event.Failed{Name: "vm/0", Code: 1, Error: ErrEarly.Error(), Early: true}}, events)
}

// Steps that are held back are written before a worker ends.
func TestLastStepsAreWritten(t *testing.T) {
	var stdout bytes.Buffer
	require.NoError(t, runWorker(t.Context(), cluster.Config{}, Part{Stdout: &stdout, Work: func(_ context.Context, w *Worker) error {
		w.Events.Emit(&event.Step{Step: 1})
		return nil
	}}))
	require.Equal(t, &event.Step{Step: 1}, event.Decode(bytes.TrimSpace(stdout.Bytes()), nil))
}

// A worker answers one question, with its record once it has a group. An answer fits into
// a message of gossip.
func TestAnswer(t *testing.T) {
	var f flightRecorder
	require.Nil(t, f.answer([]byte("how are you?")))
	ask := func() (a RankAnswer) {
		text := f.answer([]byte(AskRecord))
		require.LessOrEqual(t, len(text), membership.MaxAnswer)
		require.NoError(t, json.Unmarshal(text, &a))
		require.Equal(t, os.Getpid(), a.PID)
		return a
	}
	require.Nil(t, ask().Record)
	groups := collectivetest.Local(t, 2)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		for range 2000 { // more than a message has room for
			require.NoError(t, g.Barrier(ctx))
		}
	})
	f.group.Store(groups[1])
	r := ask().Record
	require.Equal(t, 1, r.Rank)
	require.NotEmpty(t, r.Calls)
	require.EqualValues(t, 2000, r.Calls[len(r.Calls)-1].Seq, "the newest are kept")
}

// The record is saved, and stderr gets its path, or the error if the directory does not
// exist. Without a group nothing is written.
func TestDump(t *testing.T) {
	var stderr strings.Builder
	f := flightRecorder{stderr: &stderr, dir: t.TempDir()}
	f.dump()
	require.Empty(t, stderr.String())
	f.group.Store(collectivetest.Local(t, 1)[0])
	f.dump()
	path := filepath.Join(f.dir, "flight-0000000000000001-0.json")
	require.FileExists(t, path)
	require.True(t, strings.HasSuffix(stderr.String(), "; flight record: "+path+"\n"), stderr.String())
	require.Equal(t, 1, strings.Count(stderr.String(), "\n"))
	stderr.Reset()
	f.dir = filepath.Join(f.dir, "gone")
	f.dump()
	require.Contains(t, stderr.String(), "no such file or directory")
	require.Equal(t, 1, strings.Count(stderr.String(), "\n"))
}

// Without --out the record goes to the directory for temporary files, where old ones are
// removed.
func TestDumpToTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for i := range maxFlightRecords + 5 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("flight-%016x-0.json", i+100)), nil, 0o600))
	}
	f := flightRecorder{stderr: &strings.Builder{}}
	f.group.Store(collectivetest.Local(t, 1)[0])
	f.dump()
	all, err := filepath.Glob(filepath.Join(dir, "flight-*"))
	require.NoError(t, err)
	require.Len(t, all, maxFlightRecords)
	require.FileExists(t, filepath.Join(dir, "flight-0000000000000001-0.json"), "the newest")
}

// AgreeUsage makes a failure of one rank a usage error on all. The loss of a peer is none.
func TestAgreeUsage(t *testing.T) {
	groups := collectivetest.Local(t, 3)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		require.NoError(t, AgreeUsage(ctx, g, nil))
		var mine error
		if g.Rank() == 1 {
			mine = errors.New(strings.Repeat("x", maxErrorText+10))
		}
		err := AgreeUsage(ctx, g, mine)
		require.ErrorAs(t, err, new(*UsageError))
		if g.Rank() != 1 {
			require.EqualError(t, err, "rank 1 (local/1): "+strings.Repeat("x", maxErrorText))
		}
	})
	groups[2].Abort(errors.New("left"))
	err := AgreeUsage(t.Context(), groups[0], nil)
	require.ErrorContains(t, err, "exchanging failures: ")
	require.False(t, errors.As(err, new(*UsageError)))
}

// A launcher that does not show the job shows which ranks its worker has lost.
func TestFollower(t *testing.T) {
	shown := &heard{}
	f := follower{shown}
	f.Emit(&event.Step{})
	f.Emit(&event.Lost{Rank: 1})
	f.Emit(&event.Result{})
	require.Equal(t, []event.Event{&event.Lost{Rank: 1}}, shown.events)
}

// TellLost reports the loss of another rank. It ignores other failures, and this rank's own.
func TestTellLost(t *testing.T) {
	shown := &heard{}
	lost := &collective.RankError{Rank: 1, Node: "vm/1", Phase: "heartbeat", After: 1500000, Err: collective.ErrNotConnected}
	TellLost(shown, 1, lost)
	TellLost(shown, 0, errors.New("disk full"))
	require.Empty(t, shown.events)
	TellServerLost(shown, 0, fmt.Errorf("step 3: %w", lost))
	require.Equal(t, []event.Event{&event.Lost{Rank: 1, Node: "vm/1", Phase: "heartbeat", AfterMs: 1.5, Error: collective.ErrNotConnected.Error(), Again: true}}, shown.events)

	shown.events = nil
	lost.Rank, lost.Whole = -1, 2 // of a call of the workers alone
	TellLost(shown, 0, lost)
	require.Equal(t, 2, shown.events[0].(*event.Lost).Rank)
}
