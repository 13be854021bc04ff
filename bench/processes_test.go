package bench_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// lines is a writer that calls seen with all text so far after each write.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen func(text string)
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	if l.seen != nil {
		l.seen(l.text.String())
	}
	return len(b), nil
}

// Ranks that are processes measure every size over each transport, and tell of their view
// once.
func TestCollectiveRunInProcesses(t *testing.T) {
	for how, transport := range map[string]string{"tcp": "tcp", "auto": "shm", "shared": "shm"} {
		f := processRun(how)
		var seen recorder
		var about string
		f.Placed = func(_, links string) { about = links }
		require.NoError(t, f.Launch(t.Context(), job.Options{Display: &seen, Args: []string{"collective", how}}), how)
		require.Len(t, of[*event.View](&seen), 1, how)
		require.Len(t, of[*event.View](&seen)[0].Members, 2, how)
		rows := of[*bench.RowMeasured](&seen)
		require.Len(t, rows, 2, how)
		for _, r := range rows {
			require.Zero(t, r.Row.Wrong(), how)
			require.Equal(t, 2, r.Row.In.Iterations, how)
		}
		require.Equal(t, transport, f.Transport(), how)
		require.Contains(t, about, "no TLS", how)
	}
}

// Processes that are started with different sizes, or with an algorithm that they cannot
// use, make one mistake of the user. No rank is lost, and nothing is measured.
func TestMistakesOfProcesses(t *testing.T) {
	for how, want := range map[string]string{
		"other sizes": "differs from rank 0 in sizes: give the same command on every machine",
		"double-tree": "--algorithm double-tree: these ranks cannot do it with --order ring; there are [",
	} {
		var seen recorder
		err := processRun(how).Launch(t.Context(), job.Options{Display: &seen, Args: []string{"collective", how}})
		require.ErrorContains(t, err, want)
		var end *crew.EndError
		require.ErrorAs(t, err, &end, how)
		require.True(t, end.Usage, how)
		require.Empty(t, of[*bench.RowMeasured](&seen), how)
		require.Empty(t, of[*event.Lost](&seen), how)
	}
}

// If one process is asked to stop, but not by the user of the launcher, all end. That is no
// success, and no rank is lost.
func TestCollectiveRunIsStoppedElsewhere(t *testing.T) {
	var seen recorder
	err := processRun("stop").Launch(t.Context(), job.Options{Display: &seen, Args: []string{"collective", "stop"}})
	require.ErrorIs(t, err, crew.ErrElsewhere)
	require.Len(t, of[*bench.RowMeasured](&seen), 1, "the first size")
	require.NotEmpty(t, of[*event.Stopped](&seen))
	require.Empty(t, of[*event.Lost](&seen))
}

// A size that does not fit into shared memory is an error that says so. The process is not
// killed for it.
func TestSharedMemoryIsTooSmall(t *testing.T) {
	var seen recorder
	err := processRun("too large").Launch(t.Context(), job.Options{Display: &seen, Args: []string{"collective", "too large"}})
	require.Regexp(t, `^worker \d \(\S+/\d\): cluster: Alloc of 17592186044416 elements of float32: no room for 68719476736 KiB of shared memory: `, err.Error())
	require.Empty(t, of[*bench.RowMeasured](&seen))
}

// Two processes find the fastest way, and rank 0 saves the table, where others can use it.
func TestTuneRunInProcesses(t *testing.T) {
	out := filepath.Join(t.TempDir(), "new", "table.json")
	var seen recorder
	require.NoError(t, tuneRun(out).Launch(t.Context(), job.Options{Display: &seen, Args: []string{"tune", out}}))
	require.Len(t, of[*bench.SizeTuned](&seen), 1)
	require.Equal(t, []*bench.TableSaved{{Path: out}}, of[*bench.TableSaved](&seen))
	choice := tuned.Choice{Table: out}
	require.NoError(t, choice.CheckTable(2, 1))
}

// A table that cannot be saved after the measurement fails the run, whose error says where
// and why.
func TestTuneRunCannotSave(t *testing.T) {
	directory := t.TempDir()
	var seen recorder
	f := tuneRun(filepath.Join(directory, "table.json"))
	err := f.Launch(t.Context(), job.Options{Display: &seen, Args: []string{"tune", directory}})
	var end *crew.EndError
	require.ErrorAs(t, err, &end)
	require.ErrorContains(t, end, "saving the table in "+directory+": ", "whichever rank reports it first")
	require.Len(t, of[*bench.SizeTuned](&seen), 1)
	require.Empty(t, of[*bench.TableSaved](&seen))
}

// launched launches a run and returns what the user sees.
func launched(ctx context.Context, f *bench.ScalingRun, o job.Options, args func(config, system string) []string) (stdout, stderr string, err error) {
	var out bytes.Buffer
	news := &lines{}
	o.Stdout = &out
	if o.Stderr == nil {
		o.Stderr = news
	}
	err = f.Launch(ctx, o, args)
	return out.String(), news.text.String(), err
}

// A run trains in processes, with each number of workers in turn, and reports every trial.
func TestScalingRunInProcesses(t *testing.T) {
	f, args := faultyRun(t, "none")
	f.Out = filepath.Join(t.TempDir(), "out")
	stdout, stderr, err := launched(t.Context(), f, job.Options{}, args)
	require.NoError(t, err)
	require.Regexp(t, `^(trial \d of 2, allreduce, workers \d: \d+\.\d\d s, \d+\.\d\d ms/step\n){4}$`, stderr)
	require.Contains(t, stdout, "training: 4 steps of 10 rows per worker, 330 parameters\n")
	require.Regexp(t, `(?m)^allreduce +1  \d.*\nallreduce +2  \d`, stdout)
	require.FileExists(t, filepath.Join(f.Out, "scaling.json"))
}

// A worker that is killed, or stopped by somebody else, in the middle of a trial ends the
// run. The error names the trial and the worker. The directory for results goes, since
// there are none.
func TestScalingRunLosesAWorker(t *testing.T) {
	for fault, want := range map[string]string{
		"kill": `^trial 1 of 2, allreduce, workers 2: worker 1 \(pid \d+\) was killed by signal 9 \(killed\); it was \S+/1$`,
		"stop": `^trial 1 of 2, allreduce, workers 2: .*received a stop signal`,
	} {
		f, args := faultyRun(t, fault)
		f.Out = filepath.Join(t.TempDir(), "out")
		stdout, stderr, err := launched(t.Context(), f, job.Options{}, args)
		require.Error(t, err, fault)
		require.Regexp(t, want, err.Error())
		var end *crew.EndError
		require.ErrorAs(t, err, &end, fault)
		require.Nil(t, end.Signal, "%s: the user did not stop it", fault)
		require.False(t, end.Usage, fault)
		require.Contains(t, stderr, "trial 1 of 2, allreduce, workers 1: ", "%s: the trial before succeeded", fault)
		require.NotContains(t, stderr, "workers 2: ", fault)
		require.Empty(t, stdout, fault)
		require.NoDirExists(t, f.Out, fault)
	}
}

// A signal, or the end of the context, in the middle of a run ends the trial. It is named,
// and no later one begins.
func TestScalingRunIsStopped(t *testing.T) {
	for _, how := range []string{"signal", "context"} {
		f, args := faultyRun(t, "none")
		ctx, cancel := context.WithCancelCause(t.Context())
		signals := make(chan os.Signal, 1)
		news := &lines{seen: func(text string) { // at the end of the first trial
			if how == "context" {
				cancel(errors.New("the machine is needed"))
			} else if len(signals) == 0 && strings.Count(text, "\n") == 1 {
				signals <- os.Interrupt
			}
		}}
		stdout, _, err := launched(ctx, f, job.Options{Signals: signals, Stderr: news}, args)
		cancel(nil)
		require.Empty(t, stdout, how)
		require.Equal(t, 1, strings.Count(news.text.String(), "ms/step"), how)
		var trial *bench.TrialError
		require.ErrorAs(t, err, &trial, how)
		require.Equal(t, "trial 1 of 2, allreduce, workers 2", trial.Trial, how)
		if how == "signal" {
			var end *crew.EndError
			require.ErrorAs(t, err, &end)
			require.Equal(t, os.Interrupt, end.Signal)
			require.EqualError(t, err, trial.Trial+": stopped")
			require.Contains(t, news.text.String(), "stopping after this step; once more to stop at once\n")
		} else {
			require.EqualError(t, err, trial.Trial+": the machine is needed")
		}
	}
}
