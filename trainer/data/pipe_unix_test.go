//go:build !windows

package data

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A pipe is refused, and not waited for.
func TestPipeIsNoIDX(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	_, err := ReadIDX(path)
	require.ErrorContains(t, err, path+": an IDX file is expected, this is a special file")
}
