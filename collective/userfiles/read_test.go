package userfiles

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	_, err := Read(path, 3, 0o022)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("abc"), 0o600))
	text, err := Read(path, 3, 0o022)
	require.NoError(t, err)
	require.Equal(t, "abc", string(text))
	_, err = Read(path, 2, 0o022)
	require.ErrorIs(t, err, os.ErrPermission)
	_, err = Read(dir, 3, 0)
	require.Error(t, err)
}
