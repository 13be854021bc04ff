//go:build !windows

package tuned

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Reading a pipe would wait for a writer, and no signal ends that.
func TestTableInAPipeIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	_, _, err := readTable(path)
	require.ErrorContains(t, err, "--tune: "+path+" is not a file: every worker reads the table")
}
