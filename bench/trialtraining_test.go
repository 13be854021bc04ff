package bench

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// eventLog is a Sink that keeps the events.
type eventLog struct {
	mu     sync.Mutex
	events []event.Event
}

func (l *eventLog) Emit(e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// kinds returns the kinds of all events, in order.
func (l *eventLog) kinds() []string {
	kinds := []string{}
	for _, e := range l.events {
		kinds = append(kinds, e.Kind())
	}
	return kinds
}

// smallRun is a ScalingRun of four steps on 90 small images.
func smallRun(t *testing.T) *ScalingRun {
	t.Helper()
	train, test := data.Generate(data.DigitsOptions{Train: 90, Test: 20, Side: 8})
	dir := t.TempDir()
	require.NoError(t, data.WriteMNIST(dir, train, test))
	config := filepath.Join(dir, "small.cfg")
	require.NoError(t, os.WriteFile(config, []byte(`[training]
batch_size = 10
[evaluation]
frequency = 2
[model]
@layers = "relu_relu_softmax.v1"
hidden_width = 4
dropout = 0.2
[optimizer]
@optimizers = "Adam.v1"
`), 0o644))
	return &ScalingRun{
		Catalog: catalog.New(), Config: config, Data: "mnist:" + dir, Workers: []int{1}, Trials: 1, Steps: 4, System: "allreduce",
		Hosts: "local", Transport: "auto", Compute: Compute{Flag: "real"},
	}
}

// trialOf runs a trial of three ranks in this process and returns each rank's events and
// error. change changes a rank before it runs; it may be nil.
func trialOf(t *testing.T, f *ScalingRun, change func(r *trialRank)) (logs []*eventLog, errs []error) {
	t.Helper()
	s, err := f.training(f.Config, f.System, 3).Settle()
	require.NoError(t, err)
	rows, err := s.Problem.Open(t.Context())
	require.NoError(t, err)
	logs, errs = []*eventLog{{}, {}, {}}, make([]error, 3)
	collectivetest.Ranks(t, 3, func(ctx context.Context, g *collective.Group) {
		i := g.Rank()
		run := *f
		r := &trialRank{ScalingRun: &run, training: s, rows: rows, all: g, events: logs[i], local: i}
		if change != nil {
			change(r)
		}
		errs[i] = r.run(ctx)
	})
	return logs, errs
}

// Rank 0 reports the trial: its ranks, the bytes they sent, and the parts of a step.
func TestTrial(t *testing.T) {
	for _, evaluate := range []bool{false, true} {
		f := smallRun(t)
		f.Evaluate = evaluate
		logs, errs := trialOf(t, f, nil)
		for i, err := range errs {
			require.NoError(t, err, "rank %d", i)
		}
		require.Equal(t, []string{"measuring", "measured"}, logs[0].kinds())
		require.Empty(t, logs[1].events)
		require.Empty(t, logs[2].events)
		got := logs[0].events[1].(*TrialMeasured)
		require.Equal(t, 64*4+4+4*4+4+4*10+10, got.Params)
		require.Equal(t, []int{0, 1, 2}, got.Locals)
		require.Equal(t, 3, got.Trial.Workers)
		require.Equal(t, 4, got.Trial.Steps)
		require.Equal(t, evaluate, got.Trial.Evaluation > 0)
		require.Positive(t, got.Trial.Compute)
		require.Len(t, got.Trial.Sent, 3)
		for rank, sent := range got.Trial.Sent {
			require.Greater(t, sent, 4*got.Trial.StepSent/2, "rank %d", rank)
		}
		parts := got.Trial.Compute + got.Trial.Exchange + got.Trial.Optimizer + got.Trial.Evaluation + got.Trial.Idle
		require.GreaterOrEqual(t, parts, 1000*got.Trial.Seconds/4-1e-6, "the parts of a step add up to it")
	}
}

// Workers that do not step together make as many steps each, and rank 0 reports the part of the
// gradients that was used.
func TestTrialWithoutLockstep(t *testing.T) {
	for system, most := range map[string]float64{"ps-async:colocated": 100, "ps-peers": 100, "ps-peers:2": 100, "ps-peers:100": 0} {
		t.Run(system, func(t *testing.T) {
			f := smallRun(t)
			f.System, f.Evaluate = system, true
			logs, errs := trialOf(t, f, nil)
			require.NoError(t, errors.Join(errs...))
			got := logs[0].events[1].(*TrialMeasured)
			require.Equal(t, 3, got.Trial.Workers)
			require.Equal(t, 4, got.Trial.Steps)
			require.Positive(t, got.Trial.Compute)
			require.LessOrEqual(t, got.Trial.Used, most)
			require.Equal(t, most > 0, got.Trial.Used > 0, "%v", got.Trial.Used)
			require.GreaterOrEqual(t, got.Trial.StepSent, int64(4*got.Params/2), "the gradients of other workers' shares")
		})
	}
}

// Emulated compute takes at least the given time per step.
func TestTrialWithEmulatedCompute(t *testing.T) {
	f := smallRun(t)
	f.Compute = Compute{Flag: "emulate:5ms", Took: 5 * time.Millisecond}
	logs, errs := trialOf(t, f, nil)
	require.NoError(t, errors.Join(errs...))
	got := logs[0].events[1].(*TrialMeasured).Trial
	require.GreaterOrEqual(t, got.Compute, 5.)
	require.GreaterOrEqual(t, got.Seconds, 4*.005)
}

// If one rank is asked to stop, the trial ends on all ranks. Only the first rank of the
// machine reports it.
func TestTrialStops(t *testing.T) {
	f := smallRun(t)
	stop := make(chan struct{})
	close(stop)
	logs, errs := trialOf(t, f, func(r *trialRank) {
		if r.local == 1 {
			r.stop = stop
		}
	})
	for i, err := range errs {
		require.ErrorIs(t, err, trainer.ErrStopped, "rank %d", i)
	}
	require.Equal(t, []string{"measuring", "stopped"}, logs[0].kinds())
	require.Empty(t, logs[1].events)
}

// Ranks with different --compute get an error before the first step.
func TestTrialComparesCompute(t *testing.T) {
	f := smallRun(t)
	_, errs := trialOf(t, f, func(r *trialRank) {
		if r.local == 2 {
			r.Compute.Flag = "emulate:1ms"
		}
	})
	for i, err := range errs {
		var differ *trainer.SettingsError
		require.ErrorAs(t, err, &differ, "rank %d", i)
		require.Equal(t, []string{"--compute"}, differ.Settings)
		require.Equal(t, []int{2}, differ.Ranks)
	}
}

// If one rank cannot train, it says why, and the others name it.
func TestTrialNamesTheRankThatFails(t *testing.T) {
	f := smallRun(t)
	_, errs := trialOf(t, f, func(r *trialRank) {
		if r.local == 1 {
			training := *r.training
			training.Batch = -1
			r.training = &training
		}
	})
	require.ErrorContains(t, errs[1], "batch")
	for _, i := range []int{0, 2} {
		var failed *collective.RankError
		require.ErrorAs(t, errs[i], &failed, "rank %d", i)
		require.Equal(t, 1, failed.Rank)
	}
}

// Launch reports mistakes before it starts a worker.
func TestScalingLaunchMistakes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("no key"), 0o600))
	for says, change := range map[string]func(f *ScalingRun){
		"cannot read the config":        func(f *ScalingRun) { f.Config = filepath.Join(dir, "none.cfg") },
		"--data: unknown data":          func(f *ScalingRun) { f.Data = "imagenet" },
		"not a key":                     func(f *ScalingRun) { f.KeyFile = file },
		"not a directory":               func(f *ScalingRun) { f.Out = filepath.Join(file, "out") },
		"needs more rows than the data": func(f *ScalingRun) { f.Workers = []int{1, 50} },
	} {
		f := smallRun(t)
		change(f)
		err := f.Launch(t.Context(), job.Options{Stdout: io.Discard, Stderr: io.Discard}, func(string, string) []string {
			t.Error("a worker is started")
			return nil
		})
		require.ErrorContains(t, err, says)
	}
}

// The line above a table describes the links and whether they are encrypted.
func TestLinksAreDescribed(t *testing.T) {
	for want, f := range map[string]*CollectiveRun{
		"links: no TLS": {Place: crew.Place{Nodes: 1, Transport: "tcp"}},
		"links: auto chose tcp; each rank in a network namespace, 1gbit each way; no TLS":    {Place: crew.Place{Nodes: 1, Transport: "auto"}, Hosts: Namespaces, Link: "1gbit"},
		"links: auto chose tcp; each rank in a network namespace, no limit each way; no TLS": {Place: crew.Place{Nodes: 1, Transport: "auto"}, Hosts: Namespaces},
	} {
		require.Equal(t, want, f.about(""))
	}
	require.Equal(t, "links: TLS 1.3", (&CollectiveRun{Place: crew.Place{Transport: "tcp"}}).about("a.key"))
}
