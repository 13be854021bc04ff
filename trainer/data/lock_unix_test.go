//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package data

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A file system without locks does not keep a set from being cached.
func TestFileSystemsWithoutLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	with := func(result error) (bool, error) {
		alone, unlock, err := lock(t.Context(), path, func(*os.File) (bool, error) { return lockResult(result) })
		if err == nil {
			unlock()
		}
		return alone, err
	}
	for _, result := range []error{unix.ENOSYS, unix.ENOLCK, unix.EOPNOTSUPP} {
		alone, err := with(result)
		require.NoError(t, err)
		require.False(t, alone, result)
	}
	alone, err := with(nil)
	require.NoError(t, err)
	require.True(t, alone)
	_, err = with(unix.EIO)
	require.ErrorIs(t, err, unix.EIO)
}
