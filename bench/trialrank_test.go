package bench

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// reported returns what one rank reports of a trial.
func reported(elapsed, compute, update, evaluation, stepSent, sent, local float64) []float64 {
	all := make([]float64, reportLen)
	all[reportElapsed], all[reportCompute], all[reportUpdate], all[reportEvaluation] = elapsed, compute, update, evaluation
	all[reportStepSent], all[reportSent], all[reportLocal] = stepSent, sent, local
	return all
}

// The expected parts of a step of two ranks were computed by hand: the time of the slowest
// rank, the mean compute time, and the exchange of the rank that waited least.
func TestSummarizeTrial(t *testing.T) {
	all := append(reported(2, 1, .1, .2, 500, 5000, 0), reported(2.5, 1.4, .3, .4, 700, 4000, 1)...)
	got := summarizeTrial(all, 2, []float64{.1, .2, 0, .1, .1}, 5)
	require.Equal(t, 2, got.Workers)
	require.Equal(t, 5, got.Steps)
	require.Equal(t, 2.5, got.Seconds)
	require.InDelta(t, 240, got.Compute, 1e-9, "1.2 s in 5 steps")
	require.InDelta(t, 40, got.Optimizer, 1e-9)
	require.InDelta(t, 60, got.Evaluation, 1e-9)
	require.InDelta(t, 100, got.Exchange, 1e-9)
	require.InDelta(t, 500-240-40-60-100, got.Idle, 1e-9, "the rest of 500 ms")
	require.EqualValues(t, 700, got.StepSent, "the busiest rank's")
	require.Equal(t, []int64{5000, 4000}, got.Sent)

	more := summarizeTrial(reported(1, 2, 0, 0, 0, 0, 0), 1, nil, 1)
	require.Zero(t, more.Idle, "never negative, although clocks differ")
	served := summarizeTrial(append(all, reported(0, 0, 0, 0, 0, 9000, 2)...), 2, []float64{.1, .2, 0, .1, .1}, 5)
	require.Equal(t, []int64{5000, 4000, 9000}, served.Sent)
	require.EqualValues(t, 1800, served.StepSent, "the server's 9000 bytes in 5 steps")
	require.Equal(t, 1, served.Servers)
	require.Equal(t, got.Split, served.Split, "times are those of the workers")
	require.Zero(t, summarizeTrial(reported(1, 0, 0, 0, 0, 0, 0), 1, nil, 0).Exchange, "no steps")
}

// The times of steps and evaluations add up, and bytes per step leave out the first,
// before which the ranks exchange weights.
func TestStepTimes(t *testing.T) {
	sent := []int64{10_000, 10_300, 10_500}
	r := &stepTimes{sent: func() int64 { x := sent[0]; sent = sent[1:]; return x }, last: time.Now()}
	require.Zero(t, r.sentEachStep(), "no step")
	ms := time.Millisecond
	r.Stepped(trainer.StepEvent{Compute: 30 * ms, Report: trainer.Report{Exchange: 5 * ms, Update: 1 * ms}})
	require.EqualValues(t, 10_000, r.sentEachStep(), "one step is all there is")
	r.Stepped(trainer.StepEvent{Compute: 50 * ms, Report: trainer.Report{Exchange: 7 * ms, Update: 3 * ms}})
	r.Stepped(trainer.StepEvent{Compute: 20 * ms, Report: trainer.Report{Exchange: 0, Update: 2 * ms}})
	require.InDelta(t, .1, r.compute, 1e-12)
	require.InDelta(t, .006, r.update, 1e-12)
	require.InDeltaSlice(t, []float64{.005, .007, 0}, r.exchange, 1e-12)
	require.EqualValues(t, 250, r.sentEachStep())

	r.last = time.Now().Add(-time.Second)
	r.Evaluated(trainer.EvalEvent{})
	first := r.evaluation
	require.InDelta(t, 1, first, .9, "since the last step")
	r.Evaluated(trainer.EvalEvent{})
	require.Less(t, r.evaluation-first, .9, "since the last evaluation")
}

// Two ranks share memory if both can and they are on one host.
func TestLinkKind(t *testing.T) {
	v := collective.View{Members: []collective.Member{{Host: 1}, {Host: 1}, {Host: 2}, {Host: 1}}}
	kind := linkKind(v, []bool{true, true, true, false})
	for pair, want := range map[[2]int]string{{0, 1}: "shm", {1, 0}: "shm", {0, 2}: "tcp", {0, 3}: "tcp", {2, 3}: "tcp"} {
		require.Equal(t, want, kind(pair[0], pair[1]), "%v", pair)
	}
}

// Links are counted per worker of the machine, and ranks may be in a different order.
func TestCarried(t *testing.T) {
	before := []launch.Counter{{SentBytes: 100}, {SentBytes: 200}, {SentBytes: 300}}
	after := []launch.Counter{{SentBytes: 101}, {SentBytes: 220}, {SentBytes: 600}}
	require.Equal(t, []int64{300, 1, 20}, carried(before, after, []int{2, 0, 1}))
	require.Equal(t, []int64{1, 0, 0}, carried(before, after, []int{0, 3, -1}), "there is no such worker")
	require.Equal(t, []int64{0}, carried(nil, after, []int{0}), "nothing was counted before")
	require.Empty(t, carried(before, after, nil))
}

// A trial's display keeps the result, and prefixes the output of workers with their names.
func TestTrialDisplay(t *testing.T) {
	var out bytes.Buffer
	d := &trialDisplay{Lines: crew.Lines{To: &out}}
	_, err := d.end()
	require.EqualError(t, err, "the workers ended without reporting their measurements")
	d.Emit(&TrialBegins{})
	d.Emit(&event.Stopped{})
	e := &TrialMeasured{Params: 7}
	d.Emit(e)
	got, err := d.end()
	require.NoError(t, err)
	require.Same(t, e, got)
	require.Nil(t, got.Trial.Wire, "there are no counters")
	d.Log("worker 1", []byte("out of paper"))
	d.Log("", []byte("listening"))
	d.Notice("stopping")
	require.Equal(t, "[worker 1] out of paper\nlistening\nstopping\n", out.String())
}

// A TrialError is one line that names the trial, whatever ended it.
func TestTrialError(t *testing.T) {
	cause := errors.New("the disk is full")
	for want, err := range map[string]error{
		"trial 1 of 3: the disk is full":                cause,
		"trial 1 of 3: stopped":                         &crew.EndError{Signal: os.Interrupt},
		"trial 1 of 3: the disk is full ":               &crew.EndError{Err: errors.New("the disk is full "), Signal: os.Interrupt},
		"trial 1 of 3: --link: give a rate, as 1gbit/s": crew.Usage(errors.New("--link: give a rate, as 1gbit/s")),
	} {
		e := &TrialError{"trial 1 of 3", err}
		require.EqualError(t, e, want)
		require.Equal(t, err, errors.Unwrap(e))
	}
	require.ErrorIs(t, &TrialError{"trial 1 of 3", &crew.EndError{Err: cause}}, cause)
}

// The directory for files is created before anything is measured. It is removed if it is
// empty and did not exist before.
func TestPrepareFiles(t *testing.T) {
	parent := t.TempDir()
	fresh := filepath.Join(parent, "new")
	drop, err := prepareFiles(fresh)
	require.NoError(t, err)
	require.DirExists(t, fresh)
	drop()
	require.NoDirExists(t, fresh)

	drop, err = prepareFiles(fresh)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(fresh, "table.md"), nil, 0o644))
	drop()
	require.FileExists(t, filepath.Join(fresh, "table.md"), "a directory that is not empty stays")

	drop, err = prepareFiles(parent)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(fresh))
	drop()
	require.DirExists(t, parent, "a directory that existed stays")

	require.NoError(t, os.Mkdir(filepath.Join(parent, "speedup.svg"), 0o755))
	_, err = prepareFiles(parent)
	require.ErrorContains(t, err, "speedup.svg is a directory, but the name of a file to write")
	require.NoError(t, os.WriteFile(filepath.Join(parent, "file"), nil, 0o644))
	_, err = prepareFiles(filepath.Join(parent, "file"))
	require.Error(t, err, "a file is no directory")
	drop, err = prepareFiles("")
	require.NoError(t, err, "no files are wanted")
	drop()
}

// All files of a run are written, and none is empty.
func TestWriteFiles(t *testing.T) {
	report := Scaling{Compute: "real", Trials: []Trial{{System: "allreduce", Workers: 1, Steps: 2, Seconds: 1, Links: []Link{}}}}
	dir := t.TempDir()
	require.NoError(t, report.writeFiles(""))
	require.NoError(t, report.writeFiles(dir))
	var names []string
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Positive(t, info.Size(), e.Name())
		names = append(names, e.Name())
	}
	require.Equal(t, "runtime.png runtime.svg scalability.png scalability.svg scaling.csv scaling.json speedup.png speedup.svg table.md", strings.Join(names, " "))
	err = report.writeFiles(filepath.Join(dir, "missing"))
	for _, name := range names {
		require.ErrorContains(t, err, name, "every file that could not be written is named")
	}
}

// Without a config, workers get a temporary file with the config of a small network.
func TestConfigFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path, remove, err := (&ScalingRun{}).configFile()
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), `@layers = "relu_relu_softmax.v1"`)
	require.NoError(t, remove())
	require.NoFileExists(t, path)

	named := filepath.Join(t.TempDir(), "my.cfg")
	require.NoError(t, os.WriteFile(named, nil, 0o644))
	path, remove, err = (&ScalingRun{Config: named}).configFile()
	require.NoError(t, err)
	require.Equal(t, named, path)
	require.NoError(t, remove())
	require.FileExists(t, named, "the user's file stays")
}

// Ranks in network namespaces use TCP, even if they could share memory.
func TestScalingTransport(t *testing.T) {
	require.Equal(t, "tcp", (&ScalingRun{Hosts: Namespaces, Transport: "auto"}).transport())
	require.Equal(t, "auto", (&ScalingRun{Hosts: "local", Transport: "auto"}).transport())
	require.Equal(t, []string{"allreduce", "other"}, (&ScalingRun{System: "allreduce,other"}).Systems())
}
