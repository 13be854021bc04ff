package bench_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// A recorder is a Display that keeps events.
type recorder struct {
	mu     sync.Mutex
	events []event.Event
}

func (r *recorder) Emit(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (*recorder) Log(string, []byte) {}
func (*recorder) Notice(string)      {}

// of returns the events of a type.
func of[T event.Event](r *recorder) (all []T) {
	for _, e := range r.events {
		if e, ok := e.(T); ok {
			all = append(all, e)
		}
	}
	return all
}

// collectiveRun measures two sizes between three ranks in this process.
func collectiveRun() *bench.CollectiveRun {
	return &bench.CollectiveRun{
		Spec:  bench.Spec{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{4, 4096}, Iterations: 1, Check: true},
		Ranks: 3, Memory: bench.Heap, Hosts: "local", Place: crew.Place{Nodes: 1, Transport: crew.TransportInProcess}, Order: tuned.Choice{Table: tuned.Off},
	}
}

// A run in this process tells of its ranks once, then of every row.
func TestCollectiveRunInProcess(t *testing.T) {
	for _, algorithm := range []string{"", "ring", "direct", "one-shot"} {
		var seen recorder
		f := collectiveRun()
		f.Algorithm = algorithm
		require.NoError(t, f.Launch(t.Context(), job.Options{Display: &seen}))
		views, rows := of[*event.View](&seen), of[*bench.RowMeasured](&seen)
		require.Len(t, views, 1, "one rank tells for the machine")
		require.Len(t, views[0].Members, 3)
		require.Same(t, seen.events[0], event.Event(views[0]))
		require.Len(t, rows, 2)
		for i, size := range []int{4, 4096} {
			require.Equal(t, size, rows[i].Row.Size)
			require.Zero(t, rows[i].Row.Wrong())
			if algorithm != "" {
				require.Equal(t, algorithm, rows[i].Row.Plan.Method.String())
			}
		}
	}
}

// What cannot be measured is a mistake of the user, found before there is a row.
func TestCollectiveRunMistakes(t *testing.T) {
	for says, change := range map[string]func(*bench.CollectiveRun){
		"--algorithm: ": func(f *bench.CollectiveRun) { f.Algorithm = "pigeon" },
		"these ranks cannot do it with --order ring": func(f *bench.CollectiveRun) { f.Algorithm = "double-tree" },
		"no such file": func(f *bench.CollectiveRun) { f.Order.Table = filepath.Join(t.TempDir(), "none.json") },
	} {
		var seen recorder
		f := collectiveRun()
		change(f)
		err := f.Launch(t.Context(), job.Options{Display: &seen})
		require.ErrorContains(t, err, says)
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage, says)
		require.Empty(t, of[*bench.RowMeasured](&seen), says)
		require.Empty(t, of[*event.Lost](&seen), "%s: no rank is lost", says)
	}
}

// A run that is cancelled ends with an error.
func TestCollectiveRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, collectiveRun().Launch(ctx, job.Options{}))
}

// The transport that a table names is what there will be.
func TestCollectiveRunTransport(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*bench.CollectiveRun)
		want   string
	}{
		{"ranks of one machine", func(*bench.CollectiveRun) {}, "shm"},
		{"a single rank", func(f *bench.CollectiveRun) { f.Ranks = 1 }, "tcp"},
		{"several machines", func(f *bench.CollectiveRun) { f.Place.Nodes = 2 }, "tcp"},
		{"namespaces", func(f *bench.CollectiveRun) { f.Hosts = bench.Namespaces }, "tcp"},
		{"the user's choice", func(f *bench.CollectiveRun) { f.Place.Transport = "tcp" }, "tcp"},
		{"the user's choice on several machines", func(f *bench.CollectiveRun) { f.Place.Transport, f.Place.Nodes = "shm", 2 }, "shm"},
	} {
		f := collectiveRun()
		f.Place.Transport = "auto"
		c.change(f)
		if c.want == "shm" && f.Place.Transport == "auto" && runtime.GOOS != "linux" {
			c.want = "tcp"
		}
		require.Equal(t, c.want, f.Transport(), c.name)
	}
}

// A table that a run saved is used by ranks like those that were measured, for all its
// sizes, and is refused by others.
func TestTuneRunSavesATable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.json")
	var seen recorder
	f := &bench.TuneRun{Workers: 2, Sizes: []int{4, 65536}, Out: path, Place: crew.Place{Nodes: 1, Transport: crew.TransportInProcess}}
	require.NoError(t, f.Launch(t.Context(), job.Options{Display: &seen}))
	sizes := of[*bench.SizeTuned](&seen)
	require.Len(t, sizes, 2)
	saved := of[*bench.TableSaved](&seen)
	require.Len(t, saved, 1)
	require.Equal(t, path, saved[0].Path)

	use := tuned.Choice{Table: path}
	require.NoError(t, use.CheckTable(2, 1))
	require.ErrorContains(t, use.CheckTable(3, 1), "was measured with 2 ranks, not 3")
	var told recorder
	collectivetest.Run(t, collectivetest.Local(t, 2), func(ctx context.Context, g *collective.Group) {
		if err := use.Apply(ctx, g, false, &told); err != nil {
			t.Error(err)
			return
		}
		for _, s := range sizes {
			best := s.Tuned.Ways[0]
			p := g.PlanAllReduce(collective.Of(make([]float32, s.Tuned.Bytes/4)), collective.Sum)
			if p.Method != best.Method {
				t.Errorf("%d bytes: %v is planned, and %v was the fastest", s.Tuned.Bytes, p.Method, best.Method)
			}
		}
	})
	collectivetest.Run(t, collectivetest.Local(t, 3), func(ctx context.Context, g *collective.Group) {
		if err := use.Apply(ctx, g, false, &told); err == nil {
			t.Error("a table of other ranks was used")
		}
	})
}

// Where no table can be saved, nothing is measured.
func TestTuneRunWithoutPlace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	for out, says := range map[string]string{dir: "is not a file: name one", filepath.Join(file, "table.json"): "there is no place for the table"} {
		var seen recorder
		f := &bench.TuneRun{Workers: 2, Sizes: []int{4}, Out: out, Place: crew.Place{Nodes: 1, Transport: crew.TransportInProcess}}
		err := f.Launch(t.Context(), job.Options{Display: &seen})
		require.ErrorContains(t, err, says)
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage)
		require.Empty(t, seen.events)
	}
}

// Tune fails with the group, and says at which size.
func TestTuneFails(t *testing.T) {
	collectivetest.Run(t, collectivetest.Local(t, 2), func(ctx context.Context, g *collective.Group) {
		if g.Rank() == 1 {
			g.Abort(errors.New("the disk is full"))
			return
		}
		all, err := bench.Tune(ctx, g, []int{4096}, func(bench.Tuned) { t.Error("nothing was measured") })
		if err == nil || all != nil {
			t.Errorf("got %v, %v", all, err)
			return
		}
		var lost *collective.RankError
		if !errors.As(err, &lost) || lost.Rank != 1 {
			t.Errorf("%v does not name rank 1", err)
		}
	})
}
