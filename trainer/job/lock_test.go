package job

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/query"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// machines are the groups of a job of three machines with two ranks each.
func machines(t *testing.T) []*collective.Group {
	views, transports := collective.Local(6)
	for i := range views {
		views[i].Members = append([]collective.Member(nil), views[i].Members...)
		for r := range views[i].Members {
			views[i].Members[r].Node = string(rune('a' + r/2))
		}
	}
	return collectivetest.Groups(t, views, transports, collective.Options{})
}

// takes runs lockDirs on every rank, with a directory for each machine, and with
// --force on the first. The directories are given up after all ranks have looked
// and after was called.
func takes(t *testing.T, groups []*collective.Group, dirs [3]string, after func()) []error {
	errs := make([]error, len(groups))
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		f := Spec{Place: crew.Place{Nodes: 3}, Saving: Saving{Dir: dirs[g.Rank()/2], Force: g.Rank() == 0}}
		r := &rank{training: &Training{Spec: f}, group: g, leader: g.Rank()%2 == 0}
		release, err := r.lockDirs(ctx)
		errs[g.Rank()] = err
		require.NoError(t, g.Barrier(ctx))
		if g.Rank() == 0 {
			after()
		}
		require.NoError(t, g.Barrier(ctx))
		if err == nil {
			release()
		}
	})
	return errs
}

// The machines of a job may have one directory, or one each.
func TestMachinesTakeDirectories(t *testing.T) {
	shared, own := t.TempDir(), t.TempDir()
	for _, err := range takes(t, machines(t), [3]string{shared, shared, own}, func() {
		for _, dir := range []string{shared, own} {
			holder, state, err := launch.HolderOf(dir)
			require.NoError(t, err)
			require.Equal(t, query.JobName(1), holder.Job)
			require.Equal(t, launch.Alive, state)
		}
	}) {
		require.NoError(t, err)
	}
	require.NoFileExists(t, filepath.Join(shared, launch.LockName))
	require.NoFileExists(t, filepath.Join(own, launch.LockName))
}

// A stale lock that only one machine can take over stops no other machine of the
// job, in whatever order they look.
func TestOneMachineTakesOver(t *testing.T) {
	for range 10 {
		shared, elsewhere := t.TempDir(), launch.Self()
		elsewhere.Host += "2"
		text, err := json.Marshal(launch.Holder{Format: "ringtrain-lock/1", Job: "old", Identity: elsewhere})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(shared, launch.LockName), text, 0o666))
		for _, err := range takes(t, machines(t), [3]string{shared, shared, shared}, func() {
			holder, _, err := launch.HolderOf(shared)
			require.NoError(t, err)
			require.Equal(t, query.JobName(1), holder.Job)
		}) {
			require.NoError(t, err)
		}
		require.NoFileExists(t, filepath.Join(shared, launch.LockName))
	}
}

// If the directory of one machine is another job's, all ranks of all machines
// say so, and nobody keeps a lock.
func TestMachinesAreRefused(t *testing.T) {
	free, taken := t.TempDir(), t.TempDir()
	lock, err := launch.TakeLock(taken, launch.LockOptions{Job: "another"})
	require.NoError(t, err)
	for rank, err := range takes(t, machines(t), [3]string{free, taken, ""}, func() {
		require.NoFileExists(t, filepath.Join(free, launch.LockName))
	}) {
		var wrong *crew.UsageError
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, "--out "+taken+" is in use by job another (process ")
		if rank != 2 {
			require.ErrorContains(t, err, "rank 2 (local/2): ")
		}
	}
	require.NoError(t, lock.Unlock())
}

// What killed processes of this machine have left goes, and nothing else.
func TestLeftovers(t *testing.T) {
	dir, gone := t.TempDir(), launch.Self()
	gone.Start++
	elsewhere := gone
	elsewhere.Host += "2"
	left := func(run string) string {
		path := filepath.Join(dir, "."+checkpoint.FileName(7)+"."+run+".00c0ffee.tmp")
		require.NoError(t, os.WriteFile(path, []byte("half"), 0o600))
		return path
	}
	dead, others, alive := left(gone.Tag()), left(elsewhere.Tag()), left(launch.Self().Tag())
	release, err := LockDirs([]Dir{{"--out", dir}}, launch.LockOptions{Job: "j"})
	require.NoError(t, err)
	release()
	require.NoFileExists(t, dead)
	require.FileExists(t, others, "another machine may be writing it")
	require.FileExists(t, alive)
}
