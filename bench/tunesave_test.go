package bench

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// If rank 0 cannot save the table, the other ranks learn that and why, so that every
// machine shows the cause.
func TestEveryRankKnowsThatTheTableIsLost(t *testing.T) {
	f := &TuneRun{Sizes: []int{64}, Out: t.TempDir()} // a directory cannot be replaced by a file
	logs, errs := make([]eventLog, 3), make([]error, 3)
	collectivetest.Ranks(t, 3, func(ctx context.Context, g *collective.Group) {
		errs[g.Rank()] = f.measure(ctx, g, false, &logs[g.Rank()])
	})
	require.ErrorContains(t, errs[0], "saving the table in "+f.Out+": ")
	require.Equal(t, []string{"tuned_size"}, logs[0].kinds(), "the measurement was shown")
	for _, i := range []int{1, 2} {
		var failed *collective.RankError
		require.ErrorAs(t, errs[i], &failed)
		require.Zero(t, failed.Rank)
		require.ErrorContains(t, errs[i], "saving the table in "+f.Out)
	}
}

// A rank that is cancelled ends the run of all. Nobody reports it as lost.
func TestTuneIsCancelled(t *testing.T) {
	f := &TuneRun{Sizes: []int{64}}
	logs, errs := make([]eventLog, 2), make([]error, 2)
	collectivetest.Ranks(t, 2, func(ctx context.Context, g *collective.Group) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if g.Rank() == 1 {
			cancel()
		}
		errs[g.Rank()] = f.measure(ctx, g, false, &logs[g.Rank()])
	})
	for i, err := range errs {
		require.True(t, cancelled(err), "rank %d: %v", i, err)
		require.ErrorContains(t, err, "bench: tuning 64 bytes: ")
		require.Empty(t, logs[i].events, "rank %d", i)
	}
}

// Without --out, the table is a file in the user's cache directory, in which jobs find it.
func TestTableInTheCache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), "cache"))
	f := &TuneRun{Workers: 2, Sizes: []int{64}, Place: crew.Place{Nodes: 1, Transport: crew.TransportInProcess}}
	require.NoError(t, f.Launch(t.Context(), job.Options{}))
	var found []string
	require.NoError(t, filepath.WalkDir(os.Getenv("XDG_CACHE_HOME"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".json" {
			found = append(found, path)
		}
		return err
	}))
	require.Len(t, found, 1)
	collectivetest.Ranks(t, 2, func(ctx context.Context, g *collective.Group) {
		if here := tuned.Here(g, collective.RingOrder, false).Name(); here != filepath.Base(found[0]) {
			t.Errorf("the table is %s, and jobs look for %s", found[0], here)
		}
	})
}

// Without any usable cache directory nothing is measured, and the error shows the way out.
// On several machines only the one of rank 0 saves, which is not known yet.
func TestTuneWithoutCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, name := range []string{"XDG_CACHE_HOME", "TMPDIR"} {
		t.Setenv(name, filepath.Join(file, "below"))
	}
	f := &TuneRun{Workers: 2, Sizes: []int{64}, Place: crew.Place{Nodes: 1, Transport: crew.TransportInProcess}}
	err := f.Launch(t.Context(), job.Options{})
	var usage *crew.UsageError
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "there is no place for the table: ")
	require.ErrorContains(t, err, ": name a file with --out")
	f.Place.Nodes = 2
	require.NoError(t, f.checkOut())
	f.Place.Nodes, f.Out = 1, filepath.Join(filepath.Dir(file), "new", "table.json")
	require.NoError(t, f.checkOut(), "it makes the directory of --out")
	require.DirExists(t, filepath.Dir(f.Out))
}
