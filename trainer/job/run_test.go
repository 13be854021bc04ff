package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// The events of a job in one process, the files that it leaves, and the result agree.
func TestRunInProcess(t *testing.T) {
	f := tinySpec(t)
	f.Saving = Saving{Dir: filepath.Join(t.TempDir(), "new", "run"), Every: 2, Keep: 2}
	h := run(t, f)
	views := eventsOf[*event.View](h)
	require.Len(t, views, 1, "only one rank reports")
	require.Len(t, views[0].Members, 2)
	require.Equal(t, "the CPU", views[0].Device)
	require.Equal(t, h.all[0], event.Event(views[0]))
	var steps, evals, saved []int
	samples, wire := 0, 0
	for _, e := range eventsOf[*event.Step](h) {
		steps = append(steps, e.Step)
		samples += e.Samples
		require.Positive(t, e.Loss)
		wire += e.WireBytes
	}
	for _, e := range eventsOf[*event.Eval](h) {
		evals = append(evals, e.Step)
	}
	for _, e := range eventsOf[*event.Checkpoint](h) {
		saved = append(saved, e.Step)
		require.Equal(t, stepFile(f.Saving.Dir, e.Step), e.Path)
		require.Empty(t, e.InsteadOf)
	}
	require.Equal(t, []int{1, 2, 3, 4, 5, 6}, steps)
	require.Equal(t, []int{3, 6}, evals)
	require.Equal(t, []int{2, 4, 6}, saved)
	require.Equal(t, 6*2*4, samples)
	require.Equal(t, []string{bestFile, weightsFile, checkpoint.FileName(4), checkpoint.FileName(6)}, namesIn(t, f.Saving.Dir), "no lock and no temporary file")

	end := resultOf(t, h)
	require.Equal(t, h.all[len(h.all)-1], event.Event(end))
	require.Equal(t, 6, end.Steps)
	require.Equal(t, 2, end.Workers)
	require.Equal(t, "none", end.Compress)
	require.Equal(t, wire, end.WireBytes)
	require.Equal(t, 1., end.CompressionRatio)
	require.InDelta(t, float64(samples)/end.Seconds, end.SamplesPerSecond, 1e-6*end.SamplesPerSecond)
	last := eventsOf[*event.Eval](h)[1]
	require.Equal(t, last.Metrics, end.Metrics)
	require.Equal(t, last.Loss, end.Loss)
	require.Equal(t, end.WeightsSHA256, hashOf(t, filepath.Join(f.Saving.Dir, weightsFile)))
	require.Equal(t, []*event.Weights{
		{Path: filepath.Join(f.Saving.Dir, weightsFile), Step: 6},
		{Path: filepath.Join(f.Saving.Dir, bestFile), Step: end.BestStep, Best: true},
	}, eventsOf[*event.Weights](h))

	at6, err := checkpoint.Read(stepFile(f.Saving.Dir, 6))
	require.NoError(t, err)
	sum, err := checkpoint.Hash(at6.Weights)
	require.NoError(t, err)
	require.Equal(t, end.WeightsSHA256, sum, "the last checkpoint has the trained weights")
	for note, want := range map[string]string{"workers": "2", "batch": "4", "seed": "0", "plan": end.Plan, "blas": end.BLAS, "data": f.Data} {
		require.Equal(t, want, at6.Notes[note], note)
	}
	require.Empty(t, h.said())
}

// The weights depend on what is trained, not on how it is run.
func TestSameSpecSameWeights(t *testing.T) {
	f := tinySpec(t)
	train := func(change func(*Spec)) string {
		f := f
		change(&f)
		return resultOf(t, run(t, f)).WeightsSHA256
	}
	want := train(func(*Spec) {})
	for name, change := range map[string]func(*Spec){
		"again":              func(*Spec) {},
		"with checkpoints":   func(f *Spec) { f.Saving = Saving{Dir: t.TempDir(), Every: 1} },
		"accumulated alone":  func(f *Spec) { f.Workers, f.Accumulate = 1, 2 },
		"in small buckets":   func(f *Spec) { f.Gradients.Bucket = 64 },
		"with a trace":       func(f *Spec) { f.Watch.Trace = t.TempDir() },
		"steps of the flags": func(f *Spec) { f.Steps, f.Overrides = 6, []config.Override{{Path: "training.iterations", Raw: "99"}} },
	} {
		require.Equal(t, want, train(change), name)
	}
	for name, change := range map[string]func(*Spec){
		"another seed":         func(f *Spec) { f.Seed = 1 },
		"another batch":        func(f *Spec) { f.Batch = 5 },
		"fewer steps":          func(f *Spec) { f.Steps = 5 },
		"more workers":         func(f *Spec) { f.Workers = 3 },
		"sums of means":        func(f *Spec) { f.Gradients.Reduce = "sum" },
		"compressed":           func(f *Spec) { f.Gradients.Compress = "int8" },
		"gradients never zero": func(f *Spec) { f.Gradients.Faithful = true },
	} {
		require.NotEqual(t, want, train(change), name)
	}
}

// The result of a job reports its compression.
func TestRunReportsCompression(t *testing.T) {
	f := tinySpec(t)
	f.Gradients.Compress = "int8"
	end := resultOf(t, run(t, f))
	require.Equal(t, "int8", end.Compress)
	require.Greater(t, end.CompressionRatio, 3.)
	require.Contains(t, end.Plan, "gathered as int8 by 2 ranks")
	require.Positive(t, end.WireBytes)
}

// A mistake is found before anything starts, so there are no events, files or locks.
func TestRunRefuses(t *testing.T) {
	noFile, file, taken := filepath.Join(t.TempDir(), "none"), emptyFile(t), takenPort(t)
	for want, change := range map[string]func(*Spec){
		"--workers must be at least 1":            func(f *Spec) { f.Workers = -1 },
		"none.cfg":                                func(f *Spec) { f.Config = noFile + ".cfg" },
		"--data: cannot read the MNIST dir":       func(f *Spec) { f.Data = "mnist:" + noFile },
		"--data: unknown data":                    func(f *Spec) { f.Data = "imagenet" },
		"lower one of them":                       func(f *Spec) { f.Batch = 51 },
		"--resume " + noFile + ": ":               func(f *Spec) { f.Saving.Resume = noFile },
		"--key-file: key file " + noFile:          func(f *Spec) { f.Place.Transport, f.Place.KeyFile = cluster.TransportTCP, noFile },
		"--trace " + file + ": ":                  func(f *Spec) { f.Watch.Trace = file },
		"--transport inproc runs in one process":  func(f *Spec) { f.Place.Nodes = 2 },
		noFile + ": ":                             func(f *Spec) { f.Order.Table = noFile },
		"--metrics " + taken + ": worker 0 of 2 ": func(f *Spec) { f.Watch.Metrics = taken },
	} {
		f := tinySpec(t)
		f.Saving.Dir = filepath.Join(t.TempDir(), "run")
		change(&f)
		h, err := runError(t, t.Context(), f, Options{})
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage, want)
		require.ErrorContains(t, err, want)
		require.Empty(t, h.all, want)
		if _, err := os.Stat(f.Saving.Dir); err == nil {
			require.Empty(t, namesIn(t, f.Saving.Dir), want)
		}
	}
}

// The error about a malformed key names the flag or the variable that it comes from.
func TestRunRefusesBadKeys(t *testing.T) {
	for text, want := range map[string]string{"": "key file ", "short": "key file ", "not hexadecimal, but long enough for a key": "key file "} {
		path := filepath.Join(t.TempDir(), "job.key")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		for _, byFlag := range []bool{true, false} {
			f := tinySpec(t)
			f.Place.Transport, f.Saving.Dir = cluster.TransportTCP, filepath.Join(t.TempDir(), "run")
			from := cluster.EnvKeyFile
			if byFlag {
				f.Place.KeyFile, from = path, "--key-file"
			} else {
				t.Setenv(cluster.EnvKeyFile, path)
			}
			_, err := runError(t, t.Context(), f, Options{})
			require.ErrorContains(t, err, from+": "+want+path, text)
			require.NoDirExists(t, f.Saving.Dir, "the key is read first")
		}
	}
}

// A signal stops a job after the step in progress, with a checkpoint. Resumed, it ends with
// the weights of an uninterrupted job.
func TestSignalStopsAfterAStep(t *testing.T) {
	f := tinySpec(t)
	f.Saving.Dir, f.Steps = t.TempDir(), 100_000 // more than a busy machine takes before it passes the signal on
	signals := make(chan os.Signal)
	h := &heard{on: afterStep(2, func() { signals <- os.Interrupt })}
	_, err := runError(t, t.Context(), f, Options{Display: h, Signals: signals})
	var end *crew.EndError
	require.ErrorAs(t, err, &end)
	require.Equal(t, os.Interrupt, end.Signal)
	require.NoError(t, end.Err)
	stopped := eventsOf[*event.Stopped](h)
	require.Len(t, stopped, 1)
	at := stopped[0].Steps
	require.GreaterOrEqual(t, at, 2)
	require.Zero(t, h.count("result"))
	require.Equal(t, at, eventsOf[*event.Checkpoint](h)[0].Step)
	require.NoFileExists(t, filepath.Join(f.Saving.Dir, launch.LockName))

	f.Saving, f.Steps = Saving{Resume: f.Saving.Dir}, at+4
	rest := run(t, f)
	f.Saving = Saving{}
	require.Equal(t, resultOf(t, run(t, f)).WeightsSHA256, resultOf(t, rest).WeightsSHA256)
	require.Equal(t, at+1, eventsOf[*event.Step](rest)[0].Step)
}

// Cancelling the context ends the job without a result, and releases its lock.
func TestCancelledRun(t *testing.T) {
	f := tinySpec(t)
	f.Saving, f.Steps = Saving{Dir: t.TempDir(), Every: 1}, 10_000
	gone := errors.New("the caller is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	h := &heard{on: func(e event.Event) {
		if saved, ok := e.(*event.Checkpoint); ok && saved.Step == 2 {
			cancel(gone)
		}
	}}
	_, err := runError(t, ctx, f, Options{Display: h})
	require.ErrorIs(t, err, gone)
	require.Zero(t, h.count("result"))
	require.Zero(t, h.count("weights"))
	require.Zero(t, h.count("peer_lost"), "no rank is lost")
	step, _ := Newest(f.Saving.Dir)
	require.Equal(t, 2, step, "earlier checkpoints stay")
	require.NoFileExists(t, filepath.Join(f.Saving.Dir, launch.LockName))
}

// If the weights become infinite, the job ends with an error that says what to do, and
// writes no weights.
func TestNotFiniteEndsTheJob(t *testing.T) {
	f := tinySpec(t)
	f.Saving.Dir = t.TempDir()
	f.Overrides = []config.Override{{Path: "optimizer.learn_rate", Raw: "1e38"}}
	h, err := runError(t, t.Context(), f, Options{})
	var end *crew.EndError
	require.ErrorAs(t, err, &end)
	require.Nil(t, end.Signal)
	require.ErrorContains(t, err, "lower the learn rate")
	require.Empty(t, namesIn(t, f.Saving.Dir))
	require.Zero(t, h.count("weights"))
}

// --trace writes one valid JSON file for each rank.
func TestTraceOfAJob(t *testing.T) {
	f := tinySpec(t)
	f.Watch.Trace = filepath.Join(t.TempDir(), "traces")
	run(t, f)
	require.Equal(t, []string{"trace-0.json", "trace-1.json"}, namesIn(t, f.Watch.Trace))
	for _, name := range namesIn(t, f.Watch.Trace) {
		text, err := os.ReadFile(filepath.Join(f.Watch.Trace, name))
		require.NoError(t, err)
		var all []struct{ Name string }
		require.NoError(t, json.Unmarshal(text, &all))
		names := map[string]bool{}
		for _, e := range all {
			names[e.Name] = true
		}
		require.Greater(t, len(names), 2, "%v", names)
	}
}

// consecutivePorts returns an address whose port and the next one are free.
func consecutivePorts(t *testing.T) (first string, port int) {
	for range 100 {
		a, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		port := a.Addr().(*net.TCPAddr).Port
		b, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
		require.NoError(t, a.Close())
		if err == nil {
			require.NoError(t, b.Close())
			return a.Addr().String(), port
		}
	}
	t.Skip("no two consecutive ports are free")
	return "", 0
}

// --metrics serves the steps and calls of each worker while the job runs, and not longer.
func TestMetricsOfAJob(t *testing.T) {
	f := tinySpec(t)
	first, port := consecutivePorts(t)
	f.Watch.Metrics = first
	pages := make([]string, 2)
	h := &heard{on: afterStep(5, func() {
		for worker := range pages {
			page, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", port+worker))
			require.NoError(t, err)
			text, err := io.ReadAll(page.Body)
			require.NoError(t, err)
			require.NoError(t, page.Body.Close())
			pages[worker] = string(text)
		}
	})}
	require.NoError(t, Run(t.Context(), f, Options{Display: h, Stderr: h}))
	for worker, page := range pages {
		require.Regexp(t, `(?m)^ringtrain_steps_total(\{rank="\d"\})? [45]$`, page)
		require.Contains(t, page, fmt.Sprintf(`rank="%d"`, worker))
		require.Contains(t, page, "AllReduce")
	}
	_, err := net.Dial("tcp", first)
	require.Error(t, err)
}

// WithDefaults keeps fields that are set and fills in the others.
func TestOptionsWithDefaults(t *testing.T) {
	h := new(heard)
	got := Options{Display: h, Args: []string{}, Command: "c", Stderr: h}.WithDefaults()
	require.Same(t, h, got.Display)
	require.Empty(t, got.Args)
	require.Equal(t, "c", got.Command)
	require.Equal(t, os.Stdout, got.Stdout)
	require.Nil(t, got.Signals)
	all := Options{}.WithDefaults()
	require.Equal(t, os.Args[1:], all.Args)
	require.Equal(t, strings.Join(os.Args, " "), all.Command)
	all.Display.Emit(&event.Step{})
	all.Display.Log("", nil)
	all.Display.Notice("")
	_, err := all.Stderr.Write([]byte("x"))
	require.NoError(t, err)
	require.True(t, all.Cache.Quiet, "a library writes no notices")
}

// adopt takes the numbers of workers and machines from the program that started this one.
func TestAdoptedShape(t *testing.T) {
	f := NewSpec(nil, "x.cfg")
	f.Workers = 7
	f.adopt(crew.Process{})
	require.Equal(t, 7, f.Workers)
	require.True(t, f.Alone())
	f.adopt(crew.Process{Launched: &cluster.Launched{LocalSize: 3, Nodes: 2, Size: 6}})
	require.Equal(t, 3, f.Workers)
	require.Equal(t, 2, f.Place.Nodes)
	require.False(t, f.Alone())
	f.adopt(crew.Process{Launched: &cluster.Launched{LocalSize: 1, Nodes: 1, Size: 1}})
	require.False(t, f.Alone(), "each process starts a worker of its own")
	require.Equal(t, 1., ratio(5, 0))
	require.InDelta(t, 2.5, ratio(5, 2), math.SmallestNonzeroFloat64)
}
