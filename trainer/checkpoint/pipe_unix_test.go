//go:build !windows

package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

// A pipe in place of the newest checkpoint is reported and not waited for. Links
// are followed.
func TestPipesAndLinks(t *testing.T) {
	dir, far := t.TempDir(), t.TempDir()
	path, err := training(1).Write(far)
	require.NoError(t, err)
	link := filepath.Join(dir, checkpoint.FileName(1))
	require.NoError(t, os.Symlink(path, link))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, checkpoint.FileName(2)), 0o600))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, checkpoint.FileName(3))))
	got, used, broken, err := checkpoint.Latest(dir)
	require.NoError(t, err)
	require.Equal(t, link, used)
	requireEqual(t, training(1), got)
	require.Len(t, broken, 2)
	require.ErrorIs(t, broken[0], os.ErrNotExist)
	require.ErrorContains(t, broken[1], "not a regular file")
}
