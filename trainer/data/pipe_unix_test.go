//go:build !windows

package data

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A pipe is an error, and is not waited for.
func TestPipeIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	_, err := ReadIDX(path)
	require.ErrorContains(t, err, path+": expected an IDX file, but this is a special file")
	_, err = ScanText(path)
	require.ErrorContains(t, err, path+" is not a file: every worker reads the text")
	path += ".jsonl"
	require.NoError(t, unix.Mkfifo(path, 0o600))
	_, err = ScanDocuments(path)
	require.ErrorContains(t, err, path+" is not a file: every worker reads the corpus")
}
