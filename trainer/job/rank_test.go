package job

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// An outcome is how one rank of trainRanks ended.
type outcome struct {
	heard
	err error
}

// trainRanks runs a job of three machines with two workers each. change may change the
// Spec of a rank.
func trainRanks(t *testing.T, f Spec, change func(rank int, f *Spec)) []*outcome {
	f.Place.Transport, f.Place.Nodes, f.Workers = "tcp", 3, 2
	groups := collectivetest.Machines(t, 3, 2)
	out := make([]*outcome, len(groups))
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		f, o := f, &outcome{}
		out[g.Rank()] = o
		change(g.Rank(), &f)
		s, err := f.Settle()
		require.NoError(t, err)
		rows, err := s.Problem.Open(ctx)
		require.NoError(t, err)
		r := &rank{training: s, group: g, rows: rows, events: o, leader: g.Rank()%2 == 0, pulse: crew.NewPulse()}
		o.err = r.run(ctx)
	})
	return out
}

// unchanged is a change of trainRanks that changes nothing.
func unchanged(int, *Spec) {}

// One rank of each machine reports, and all machines end with the same weights.
func TestLeadersReport(t *testing.T) {
	f := tinySpec(t)
	dirs := [3]string{t.TempDir(), t.TempDir(), t.TempDir()}
	all := trainRanks(t, f, func(rank int, f *Spec) { f.Saving = Saving{Dir: dirs[rank/2], Every: 3} })
	sum := resultOf(t, &all[0].heard).WeightsSHA256
	for rank, o := range all {
		require.NoError(t, o.err)
		if rank%2 == 1 {
			require.Empty(t, o.all, "rank %d", rank)
			continue
		}
		require.Equal(t, 1, o.count("view"))
		require.Equal(t, 6, o.count("step"))
		require.Equal(t, 6, resultOf(t, &o.heard).Workers)
		require.Equal(t, sum, resultOf(t, &o.heard).WeightsSHA256)
		require.Equal(t, sum, hashOf(t, filepath.Join(dirs[rank/2], weightsFile)))
	}
	require.Equal(t, []string{bestFile, weightsFile, checkpoint.FileName(3), checkpoint.FileName(6)}, namesIn(t, dirs[0]))
	require.Equal(t, []string{bestFile, weightsFile}, namesIn(t, dirs[1]), "only rank 0 writes checkpoints")

	f.Place.Transport, f.Workers = crew.TransportInProcess, 6
	require.Equal(t, sum, resultOf(t, run(t, f)).WeightsSHA256, "the same job on one machine")
}

// If a setting differs between workers, all ranks return an error that names it.
func TestWorkersMustAgree(t *testing.T) {
	f := tinySpec(t)
	other, text := smallSpec(t, "[training]\nbatch_size = 4\niterations = 6\n[evaluation]\nfrequency = 2\n"), tinyData(t)
	train, err := data.OpenMNIST(text)
	require.NoError(t, err)
	train.Train.Pixels[0] ^= 1
	require.NoError(t, data.WriteMNIST(text, train.Train, train.Test))
	for want, change := range map[string]func(*Spec){
		"the seed":              func(f *Spec) { f.Seed = 3 },
		"--compress":            func(f *Spec) { f.Gradients.Compress = "bf16" },
		"--faithful-accumulate": func(f *Spec) { f.Gradients.Faithful = true },
		"--switch":              func(f *Spec) { f.Gradients.Switch, f.Gradients.Servers = "3:ps-sync", Colocated },
		"--batch":               func(f *Spec) { f.Batch = 3 },
		"evaluation.frequency":  func(f *Spec) { f.Config = other.Config },
		"the data":              func(f *Spec) { f.Data = "mnist:" + text },
	} {
		for rank, o := range trainRanks(t, f, func(rank int, f *Spec) {
			if rank == 3 {
				change(f)
			}
		}) {
			var settings *trainer.SettingsError
			require.ErrorAs(t, o.err, &settings, "%s, rank %d", want, rank)
			require.ErrorContains(t, o.err, want)
			require.Zero(t, o.count("step"), "no rank trains")
			require.Zero(t, o.count("result"))
		}
	}
}

// Machines may differ in what does not affect the result.
func TestMachinesMayDiffer(t *testing.T) {
	f := tinySpec(t)
	elsewhere := tinySpec(t)
	for _, o := range trainRanks(t, f, func(rank int, f *Spec) {
		if rank >= 4 {
			f.Config, f.Data, f.Watch.LogLevel = elsewhere.Config, elsewhere.Data, "info"
		}
	}) {
		require.NoError(t, o.err)
	}
}

// If one machine cannot write its weights, the ranks of all machines name it, and none
// reports a result.
func TestOneMachineLosesItsWeights(t *testing.T) {
	f := tinySpec(t)
	dirs := [3]string{t.TempDir(), emptyFile(t), t.TempDir()}
	s, err := f.Settle()
	require.NoError(t, err)
	rows, err := s.Problem.Open(t.Context())
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		groups, all, finished := collectivetest.Machines(t, 3, 2), make([]*outcome, 6), atomic.Int32{}
		begin := time.Now()
		var ranks sync.WaitGroup
		for _, g := range groups { // without the deadline of collectivetest.Run
			ranks.Go(func() {
				s, o := *s, &outcome{}
				all[g.Rank()] = o
				s.Spec.Saving.Dir = dirs[g.Rank()/2]
				r := &rank{training: &s, group: g, rows: rows, events: o, leader: g.Rank()%2 == 0, locked: true, finished: func() { finished.Add(1) }}
				o.err = r.run(t.Context())
			})
		}
		ranks.Wait()
		require.Equal(t, retryTime, time.Since(begin), "others wait while one retries")
		require.EqualValues(t, 6, finished.Load())
		for rank, o := range all {
			require.ErrorContains(t, o.err, "lost the trained weights and the best weights: ")
			require.Zero(t, o.count("result"))
			if rank != 2 {
				require.ErrorContains(t, o.err, "rank 2 (local/2): ")
			}
		}
		require.Equal(t, 1, all[2].count("save_retry"))
		for rank, want := range []int{1, 0, 0, 0, 1, 0} {
			require.Equal(t, want, all[rank].count("save_wait"), "rank %d: the first of each other machine says that it waits", rank)
			for _, e := range all[rank].all {
				if w, ok := e.(*event.SaveWait); ok {
					require.Equal(t, "rank 2 (local/2)", w.Name)
				}
			}
		}
	})
	require.FileExists(t, filepath.Join(dirs[0], weightsFile), "other machines keep theirs")
	require.FileExists(t, filepath.Join(dirs[2], weightsFile))
}

// Servers end as usual if all workers know why the job fails. They blame no worker for leaving.
func TestServersEndWithAFailedJob(t *testing.T) {
	for _, strategy := range []string{psSync, psAsync} {
		f := tinySpec(t)
		f.Strategy, f.Gradients.Servers, f.Workers = strategy, "1", 2
		f.Saving = Saving{Dir: t.TempDir(), Resume: t.TempDir()} // without a checkpoint
		s, err := f.Settle()
		require.NoError(t, err)
		rows, err := s.Problem.Open(t.Context())
		require.NoError(t, err)
		views, transports := collective.Local(3)
		views[0].Members[2].Role = collective.Server // the views share the list
		groups, errs := collectivetest.Groups(t, views, transports, collective.Options{}), make([]error, 3)
		collectivetest.Run(t, groups, func(ctx context.Context, all *collective.Group) {
			defer all.Close()
			if all.Rank() == 2 {
				errs[2] = Serve(ctx, s, all)
				return
			}
			g, served, err := WorkersOf(ctx, all)
			if assert.NoError(t, err) {
				defer g.Close()
				r := &rank{training: s, group: g, combining: combining{served: served}, rows: rows, events: new(heard), leader: true, locked: true}
				errs[all.Rank()] = r.run(ctx)
			}
		})
		for _, err := range errs[:2] {
			require.ErrorContains(t, err, "no machine has an intact checkpoint there")
		}
		require.NoError(t, errs[2], strategy)
	}
}

// A failure of one rank reaches the others as an error that names it.
func TestFailureOfOneRank(t *testing.T) {
	f := tinySpec(t)
	s, err := f.Settle()
	require.NoError(t, err)
	rows, err := s.Problem.Open(t.Context())
	require.NoError(t, err)
	groups, errs := collectivetest.Machines(t, 3, 2), make([]error, 6)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		s := *s
		if g.Rank() == 4 {
			s.Batch = 0 // which Settle refuses
		}
		errs[g.Rank()] = (&rank{training: &s, group: g, rows: rows, events: new(heard), leader: true}).run(ctx)
	})
	for rank, err := range errs {
		var lost *collective.RankError
		switch {
		case rank == 4:
			require.Error(t, err)
			require.False(t, errors.As(err, &lost), "its own error is plain: %v", err)
		default:
			require.ErrorAs(t, err, &lost, "rank %d", rank)
			require.Equal(t, 4, lost.Rank)
		}
	}
}

// Training with the Config of Assemble gives the weights of a job.
func TestAssemble(t *testing.T) {
	f := tinySpec(t)
	want := resultOf(t, run(t, f)).WeightsSHA256
	s, err := f.Settle()
	require.NoError(t, err)
	set, err := s.Open(t.Context(), Options{})
	require.NoError(t, err)
	views, transports := collective.Local(2)
	collectivetest.Run(t, collectivetest.Groups(t, views, transports, collective.Options{}), func(ctx context.Context, g *collective.Group) {
		backend := cpu.New(cpu.Options{})
		defer backend.Close()
		c, err := s.Assemble(ctx, g, nil, set, backend)
		require.NoError(t, err)
		require.Nil(t, c.Observer, "there is no one to report to")
		require.Nil(t, c.Saver)
		var steps stepCounter
		c.Observer = &steps
		result, err := trainer.Train(ctx, c)
		require.NoError(t, err)
		require.Equal(t, 6, result.Steps)
		require.Equal(t, stepCounter{6, 2}, steps)
		tensors, err := weights(backend, c.Task.Params())
		require.NoError(t, err)
		sum, err := checkpoint.Hash(tensors)
		require.NoError(t, err)
		require.Equal(t, want, sum)
	})
}

// A stepCounter is an Observer that counts.
type stepCounter struct{ steps, evals int }

func (c *stepCounter) Stepped(trainer.StepEvent)   { c.steps++ }
func (c *stepCounter) Evaluated(trainer.EvalEvent) { c.evals++ }

// A fanOut passes every event on to every observer.
func TestFanOut(t *testing.T) {
	var a, b stepCounter
	all := fanOut{&a, &b}
	all.Stepped(trainer.StepEvent{})
	all.Stepped(trainer.StepEvent{})
	all.Evaluated(trainer.EvalEvent{})
	require.Equal(t, stepCounter{2, 1}, a)
	require.Equal(t, a, b)
}

// Events are in seconds and milliseconds.
func TestObserverUnits(t *testing.T) {
	h := new(heard)
	observer{h}.Stepped(trainer.StepEvent{
		Report: trainer.Report{Loss: .5, Weight: 8, Exchange: 2 * time.Millisecond, Update: time.Microsecond, Sent: 9},
		Step:   3, Elapsed: 2 * time.Second, Compute: 1500 * time.Microsecond,
	})
	observer{h}.Evaluated(trainer.EvalEvent{Step: 3, Metrics: []trainer.Metric{{Name: "accuracy", Value: .25}}, Loss: 2, Elapsed: 3 * time.Second})
	require.Equal(t, []event.Event{
		&event.Step{Step: 3, Loss: .5, Samples: 8, Seconds: 2, ComputeMs: 1.5, ExchangeMs: 2, UpdateMs: .001, WireBytes: 9},
		&event.Eval{Step: 3, Metrics: event.Metrics{{Name: "accuracy", Value: .25}}, Loss: 2, Seconds: 3},
	}, h.all)
}

// hasWeights recognises a file with the same values, and no missing, corrupt or different
// one.
func TestHasWeights(t *testing.T) {
	f := tinySpec(t)
	f.Saving.Dir = t.TempDir()
	run(t, f)
	path := filepath.Join(f.Saving.Dir, weightsFile)
	file, err := checkpoint.Load(path)
	require.NoError(t, err)
	require.True(t, hasWeights(path, file.Tensors))
	require.False(t, hasWeights(path+".none", file.Tensors))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text[len(text)-1] ^= 1
	require.NoError(t, os.WriteFile(path, text, 0o600))
	require.False(t, hasWeights(path, file.Tensors))
	require.NoError(t, os.WriteFile(path, text[:100], 0o600))
	require.False(t, hasWeights(path, file.Tensors))
}

// No rank returns before all have finished, because it would take down connections that
// others still use.
func TestRanksReturnTogether(t *testing.T) {
	s, err := tinySpec(t).Settle()
	require.NoError(t, err)
	rows, err := s.Problem.Open(t.Context())
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		views, transports := collective.Local(2)
		groups := collectivetest.Groups(t, views, transports, collective.Options{})
		blocked, returned := make(chan struct{}), atomic.Int32{}
		release := sync.OnceFunc(func() { close(blocked) })
		var ranks sync.WaitGroup
		defer ranks.Wait()
		defer release()
		for _, g := range groups {
			finished := func() {}
			if g.Rank() == 1 {
				finished = func() { <-blocked }
			}
			ranks.Go(func() {
				h := new(heard)
				r := &rank{training: s, group: g, rows: rows, events: h, leader: true, finished: finished}
				require.NoError(t, r.run(t.Context()))
				returned.Add(1)
				require.Equal(t, 1, h.count("result"))
			})
		}
		synctest.Wait()
		require.Zero(t, returned.Load(), "rank 0 waits for rank 1")
		release()
		ranks.Wait()
		require.EqualValues(t, 2, returned.Load())
	})
}

// If one worker is asked to stop, all ranks of all machines stop after the same step, save,
// and return ErrStopped.
func TestOneWorkerIsAskedToStop(t *testing.T) {
	f := tinySpec(t)
	f.Saving.Dir = t.TempDir()
	s, err := f.Settle()
	require.NoError(t, err)
	rows, err := s.Problem.Open(t.Context())
	require.NoError(t, err)
	asked := make(chan struct{})
	close(asked)
	groups, all := collectivetest.Machines(t, 3, 2), make([]*outcome, 6)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		r := &rank{training: s, group: g, rows: rows, leader: g.Rank()%2 == 0}
		if g.Rank() == 3 {
			r.stop = asked
		}
		o := &outcome{}
		all[g.Rank()], r.events = o, o
		o.err = r.run(ctx)
	})
	step, _ := Newest(f.Saving.Dir)
	require.Less(t, step, 6)
	for rank, o := range all {
		require.ErrorIs(t, o.err, trainer.ErrStopped)
		require.Zero(t, o.count("result"))
		if rank%2 == 0 {
			require.Equal(t, []*event.Stopped{{Steps: step}}, eventsOf[*event.Stopped](&o.heard))
		}
	}
}
