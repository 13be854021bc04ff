//go:build unix

package job

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// fill makes writes beyond a size fail in the middle of a file, as a full disk does, until
// free is called.
func fill(t *testing.T, size uint64) (free func()) {
	signal.Ignore(syscall.SIGXFSZ) // the default is to kill the process
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	full := syscall.Rlimit{Cur: size, Max: before.Max}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full))
	free = func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) }
	t.Cleanup(free)
	return free
}

// If the disk is full in the middle of a checkpoint, only that checkpoint is lost. No part of
// it stays, and the one before is intact.
func TestFullDisk(t *testing.T) {
	if !inChild(t) {
		return
	}
	f := tinySpec(t)
	f.Saving = Saving{Dir: t.TempDir(), Every: 2}
	free := func() {}
	h := &heard{}
	h.on = func(e event.Event) {
		afterStep(3, func() { free = fill(t, 1000) })(e)
		afterStep(5, func() { free() })(e)
	}
	require.NoError(t, Run(t.Context(), f, Options{Display: h, Stderr: h}))
	failed := eventsOf[*event.CheckpointFailed](h)
	require.Len(t, failed, 1)
	require.Equal(t, stepFile(f.Saving.Dir, 4), failed[0].Path)
	require.Contains(t, failed[0].Error, syscall.EFBIG.Error())
	require.NotContains(t, failed[0].Error, ".tmp", "users do not know temporary files")
	require.Equal(t, []string{bestFile, weightsFile, checkpoint.FileName(2), checkpoint.FileName(6)}, namesIn(t, f.Saving.Dir))
	_, err := checkpoint.Read(stepFile(f.Saving.Dir, 2))
	require.NoError(t, err)
}

// If the disk is full at the end, the job retries, and writes complete weights as soon as
// there is space.
func TestFullDiskAtTheEnd(t *testing.T) {
	if !inChild(t) {
		return
	}
	f := tinySpec(t)
	f.Saving.Dir = t.TempDir()
	free := func() {}
	h := &heard{}
	h.on = func(e event.Event) {
		afterStep(6, func() { free = fill(t, 1000) })(e)
		if retry, ok := e.(*event.SaveRetry); ok {
			require.Contains(t, retry.String(), "file too large; retrying until ")
			free()
		}
	}
	took, err := inBubble(t, f, h)
	require.NoError(t, err)
	require.Equal(t, retryFirst, took)
	require.Equal(t, resultOf(t, h).WeightsSHA256, hashOf(t, filepath.Join(f.Saving.Dir, weightsFile)))
	require.Equal(t, []string{bestFile, weightsFile, checkpoint.FileName(6)}, namesIn(t, f.Saving.Dir))
}

// A directory without write permission is refused before anything starts.
func TestReadOnlyDirectory(t *testing.T) {
	f := tinySpec(t)
	f.Saving.Dir = t.TempDir()
	if os.Getuid() == 0 {
		f.Saving.Dir = unwritable(t)
	} else {
		require.NoError(t, os.Chmod(f.Saving.Dir, 0o500))
	}
	h, err := runError(t, t.Context(), f, Options{})
	require.ErrorContains(t, err, "--out "+f.Saving.Dir+": ")
	require.Empty(t, h.all)
}
