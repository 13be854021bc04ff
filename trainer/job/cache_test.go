package job

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// If the user's cache directory cannot be used, one notice says where the cache is instead,
// and workers get the same directory.
func TestCache(t *testing.T) {
	t.Setenv(data.EnvCache, "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if dir, err := os.UserCacheDir(); err != nil || dir != os.Getenv("XDG_CACHE_HOME") {
		t.Skip("the cache directory of this system cannot be chosen")
	}
	h := new(heard)
	c := &Cache{Stderr: h}
	c.Prepare("")
	c.Prepare("digits-v1")
	require.Empty(t, h.said())
	require.Empty(t, c.Environ())

	usual := emptyFile(t) // no directory can be made there
	t.Setenv("XDG_CACHE_HOME", usual)
	t.Setenv("TMPDIR", t.TempDir())
	c.Prepare("digits-v1")
	c.Prepare("")
	elsewhere, err := data.OpenCache()
	require.NoError(t, err)
	require.Equal(t, "ringtrain: keeping the cache in "+elsewhere.Dir+", because your cache directory cannot be used: mkdir "+usual+": not a directory\n", h.said(), "once")
	require.Equal(t, []string{data.EnvCache + "=" + elsewhere.Dir}, c.Environ())

	quiet := &Cache{Stderr: h, Quiet: true}
	quiet.Prepare("")
	require.Equal(t, c.Environ(), quiet.Environ(), "silently")
	require.NotContains(t, h.said()[1:], "ringtrain: keeping", "still once")

	var none *Cache
	none.Prepare("")
	require.Empty(t, none.Environ())
}

// Data in a read-only cache is read from there.
func TestCacheThatIsReadOnly(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root writes anywhere")
	}
	home := t.TempDir()
	t.Setenv(data.EnvCache, "")
	t.Setenv("XDG_CACHE_HOME", home)
	require.NoError(t, os.MkdirAll(filepath.Join(home, "ringtrain", "digits-v1"), 0o700))
	require.NoError(t, os.Chmod(filepath.Join(home, "ringtrain"), 0o500))
	h := new(heard)
	c := &Cache{Stderr: h}
	c.Prepare("digits-v1")
	require.Empty(t, h.said())
	require.Empty(t, c.Environ())
}
