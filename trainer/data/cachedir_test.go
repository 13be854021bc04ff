package data

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// home sets the user's cache directory to dir and the temporary directory to an
// empty one.
func home(t *testing.T, dir string) (temporary string) {
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, dir)
	}
	temporary = t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TMP", temporary)
	t.Setenv(EnvCache, "")
	return temporary
}

func TestOpenCache(t *testing.T) {
	dir := t.TempDir()
	temporary := home(t, dir)
	_, found := FindCached("x")
	require.False(t, found)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "looking must not create anything")
	c, err := OpenCache()
	require.NoError(t, err)
	require.NoError(t, c.Instead)
	require.Equal(t, "ringtrain", filepath.Base(c.Dir))
	require.Contains(t, c.Dir, dir)
	left, err = os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
	left, err = os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "x"), nil, 0o600))
	path, found := FindCached("x")
	require.True(t, found)
	require.Equal(t, filepath.Join(c.Dir, "x"), path)
}

// Without a writable cache directory, OpenCache uses one in the temporary directory that
// only this user can access and every process finds.
func TestOpenCacheFallback(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{"", file} {
		temporary := home(t, dir)
		c, err := OpenCache()
		require.NoError(t, err)
		require.Error(t, c.Instead)
		require.Equal(t, temporary, filepath.Dir(c.Dir))
		info, err := os.Stat(c.Dir)
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		}
		again, err := OpenCache()
		require.NoError(t, err)
		require.Equal(t, c.Dir, again.Dir)
		require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "x"), nil, 0o600))
		path, found := FindCached("x")
		require.True(t, found)
		require.Equal(t, filepath.Join(c.Dir, "x"), path)
	}
}

// A directory that others created or can access is not used.
func TestOpenCacheOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("each user has a separate temporary directory on this system")
	}
	home(t, "")
	require.NoError(t, os.Mkdir(temporaryCache(), 0o755))
	_, err := OpenCache()
	require.ErrorContains(t, err, "must be a directory that only this user can access; remove it, or set XDG_CACHE_HOME")
	require.NoError(t, os.WriteFile(filepath.Join(temporaryCache(), "x"), nil, 0o600))
	_, found := FindCached("x")
	require.False(t, found)
	require.NoError(t, os.RemoveAll(temporaryCache()))
	require.NoError(t, os.Symlink(t.TempDir(), temporaryCache()))
	_, err = OpenCache()
	require.ErrorContains(t, err, "must be a directory that only this user can access")
}

// A file in the user's cache directory is read there even if the directory is not
// writable, and workers use the cache of their launcher.
func TestCacheFind(t *testing.T) {
	user, instead := t.TempDir(), errors.New("read-only")
	c := Cache{Dir: t.TempDir(), Instead: instead, user: user}
	require.NoError(t, os.Mkdir(filepath.Join(user, DigitsName), 0o700))
	path, why := c.Find(DigitsName)
	require.NoError(t, why)
	require.Equal(t, filepath.Join(user, DigitsName), path)
	path, why = c.Find("x")
	require.Equal(t, instead, why)
	require.Equal(t, filepath.Join(c.Dir, "x"), path)

	home(t, user)
	t.Setenv(EnvCache, c.Dir)
	of, err := OpenCache()
	require.NoError(t, err)
	require.Equal(t, c.Dir, of.Dir)
	path, _ = of.Find("x")
	require.Equal(t, filepath.Join(c.Dir, "x"), path)
}
