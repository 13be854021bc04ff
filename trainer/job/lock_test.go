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

// lockAll calls lockDirs on every rank, with a directory for each machine, and with --force
// on rank 0. Once all ranks have an answer it calls check, and then releases the locks.
func lockAll(t *testing.T, groups []*collective.Group, dirs [3]string, check func()) []error {
	errs := make([]error, len(groups))
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		f := Spec{Place: crew.Place{Nodes: 3}, Saving: Saving{Dir: dirs[g.Rank()/2], Force: g.Rank() == 0}}
		r := &rank{training: &Training{Spec: f}, group: g, leader: g.Rank()%2 == 0}
		release, err := r.lockDirs(ctx)
		errs[g.Rank()] = err
		require.NoError(t, g.Barrier(ctx))
		if g.Rank() == 0 {
			check()
		}
		require.NoError(t, g.Barrier(ctx))
		if err == nil {
			release()
		}
	})
	return errs
}

// The machines of a job may share a directory, or use one each.
func TestMachinesLockDirectories(t *testing.T) {
	shared, own := t.TempDir(), t.TempDir()
	for _, err := range lockAll(t, collectivetest.Machines(t, 3, 2), [3]string{shared, shared, own}, func() {
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

// If one machine may replace a stale lock, with --force, the other machines of the job get
// the lock too, in whatever order they try.
func TestOneMachineTakesOver(t *testing.T) {
	for range 10 {
		shared, elsewhere := t.TempDir(), launch.Self()
		elsewhere.Host += "2"
		text, err := json.Marshal(launch.Holder{Format: "ringtrain-lock/1", Job: "old", Identity: elsewhere})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(shared, launch.LockName), text, 0o666))
		for _, err := range lockAll(t, collectivetest.Machines(t, 3, 2), [3]string{shared, shared, shared}, func() {
			holder, _, err := launch.HolderOf(shared)
			require.NoError(t, err)
			require.Equal(t, query.JobName(1), holder.Job)
		}) {
			require.NoError(t, err)
		}
		require.NoFileExists(t, filepath.Join(shared, launch.LockName))
	}
}

// If another job uses the directory of one machine, all ranks of all machines report it, and
// no lock stays.
func TestMachinesAreRefused(t *testing.T) {
	free, taken := t.TempDir(), t.TempDir()
	lock, err := launch.TakeLock(taken, launch.LockOptions{Job: "another"})
	require.NoError(t, err)
	for rank, err := range lockAll(t, collectivetest.Machines(t, 3, 2), [3]string{free, taken, ""}, func() {
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

// Locking removes the temporary files of dead processes of this machine, and nothing else.
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
