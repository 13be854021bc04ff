package userfiles

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCacheDir(t *testing.T) {
	home := func(dir string) {
		for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
			t.Setenv(name, dir)
		}
	}
	user := t.TempDir()
	home(user)
	t.Setenv(EnvCache, "")
	dir, err := CacheDir()
	require.NoError(t, err)
	require.Equal(t, "ringtrain", filepath.Base(dir))
	require.Contains(t, dir, user)

	t.Setenv(EnvCache, "elsewhere")
	other, err := CacheDir()
	require.NoError(t, err)
	require.Equal(t, "elsewhere", other)
	def, err := DefaultCacheDir()
	require.NoError(t, err)
	require.Equal(t, dir, def)

	home("")
	_, err = CacheDir()
	require.NoError(t, err)
	t.Setenv(EnvCache, "")
	_, err = CacheDir()
	require.Error(t, err)
}
