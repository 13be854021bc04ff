//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// train --out | head -1 saves its result although its output is no longer read.
func TestNobodyReads(t *testing.T) {
	dir := t.TempDir()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	var stderr strings.Builder
	cmd := command(t, small(t, "--steps", "3", "--workers", "1", "--out", dir)...)
	cmd.Stdout, cmd.Stderr = write, &stderr
	require.Error(t, cmd.Run())
	require.NoError(t, write.Close())
	require.Equal(t, 1, cmd.ProcessState.ExitCode(), stderr.String())
	require.Contains(t, stderr.String(), "broken pipe")
	require.FileExists(t, filepath.Join(dir, "model.safetensors"))
	require.Equal(t, []int{3}, steps(t, dir))
}

// predict | head -1 ends quietly, by SIGPIPE, when its output is closed.
func TestNobodyReadsPredictions(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	var stderr strings.Builder
	cmd := command(t, "predict", varied(t), filepath.Join(saved(t), "images.npy"))
	cmd.Stdout, cmd.Stderr = write, &stderr
	require.Error(t, cmd.Run())
	require.NoError(t, write.Close())
	require.Equal(t, syscall.SIGPIPE, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
	require.Empty(t, stderr.String())
}
