//go:build unix

package userfiles

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// foreign is a file of another user.
type foreign struct{ fs.FileInfo }

func (f foreign) Sys() any {
	owner := *f.FileInfo.Sys().(*syscall.Stat_t)
	owner.Uid++
	return &owner
}

// unknown is a file whose owner is not known.
type unknown struct{ fs.FileInfo }

func (unknown) Sys() any { return nil }

func TestOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	for _, c := range []struct {
		mode, denied fs.FileMode
		want         bool
	}{
		{0o600, 0o077, true},
		{0o755, 0o022, true},
		{0o755, 0o077, false},
		{0o620, 0o022, false},
		{0o602, 0o022, false},
		{0o666, 0, true},
	} {
		require.NoError(t, os.Chmod(path, c.mode))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, c.want, Own(info, c.denied), "%o without %o", c.mode, c.denied)
		require.False(t, Own(foreign{info}, c.denied))
		require.False(t, Own(unknown{info}, c.denied))
	}
}

// Neither files that others can write, nor links, nor pipes are read.
func TestReadOfOthers(t *testing.T) {
	dir := t.TempDir()
	path, link, pipe := filepath.Join(dir, "x"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	require.NoError(t, os.WriteFile(path, []byte("abc"), 0o600))
	require.NoError(t, os.Symlink(path, link))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := Read(link, 3, 0o022)
	require.Error(t, err)
	_, err = Read(pipe, 3, 0o022)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.NoError(t, os.Chmod(path, 0o620))
	_, err = Read(path, 3, 0o022)
	require.ErrorIs(t, err, fs.ErrPermission)
}
