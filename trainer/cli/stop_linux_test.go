package cli_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// A suspended worker cannot finish its step. The others notice, so one signal is
// enough.
func TestOneInterruptWithAStoppedWorker(t *testing.T) {
	collectivetest.Slow(t) // TestInterruptOfOneWaitingWorker and TestSignals are faster
	r := begin(t, small(t, "--workers", "2")...)
	pids := r.workers(t)
	require.NoError(t, syscall.Kill(pids[1], syscall.SIGSTOP))
	begun := time.Now()
	require.NoError(t, r.Process.Signal(os.Interrupt))
	require.Equal(t, 130, r.finish(t))
	require.Contains(t, r.stderr.String(), "no heartbeat")
	require.Less(t, time.Since(begun), 15*time.Second, "sooner than workers that finish their step")
	requireGone(t, pids)
}

// A signal during the generation of data ends the job at once.
func TestInterruptWhileDrawing(t *testing.T) {
	cache := t.TempDir()
	cmd := command(t, "train", config(t), "--steps", "1")
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+cache)
	require.NoError(t, cmd.Start())
	for { // until it generates data, or has done so
		if _, err := os.Stat(filepath.Join(cache, "ringtrain", "digits-v1.lock")); err == nil {
			break
		}
		runtime.Gosched()
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	left, err := os.ReadDir(filepath.Join(cache, "ringtrain"))
	require.NoError(t, err)
	require.Len(t, left, 1, "only the lock: no incomplete set")
}
