package cuda

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/userfiles"
)

func TestCacheKeeps(t *testing.T) {
	c := NewCache(filepath.Join(t.TempDir(), "deep", "kernels"))
	key := imageKey("12.9", "a.cu", "text", "--gpu-architecture=sm_90")
	_, ok := c.get(key)
	require.False(t, ok)
	for _, image := range []string{"", "\x7fELF\x00\x00image", "another"} { // the last one wins
		require.NoError(t, c.put(key, []byte(image)))
		got, ok := c.get(key)
		require.True(t, ok)
		require.Equal(t, image, string(got))
	}
	files, err := os.ReadDir(c.dir)
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing is left of writing")

	var nowhere Cache
	require.NoError(t, nowhere.put(key, []byte("x")))
	_, ok = nowhere.get(key)
	require.False(t, ok)
}

// get ignores files that a crash, a full disk or another program has damaged.
func TestCacheRefusesWhatIsNotWhole(t *testing.T) {
	c := NewCache(t.TempDir())
	key := imageKey("k")
	require.NoError(t, c.put(key, []byte("the image")))
	whole, err := os.ReadFile(c.file(key))
	require.NoError(t, err)
	for n := range whole {
		require.NoError(t, os.WriteFile(c.file(key), whole[:n], 0o644))
		_, ok := c.get(key)
		require.False(t, ok, "the first %d bytes", n)
		changed := append([]byte(nil), whole...)
		changed[n] ^= 1
		require.NoError(t, os.WriteFile(c.file(key), changed, 0o644))
		_, ok = c.get(key)
		require.False(t, ok, "byte %d changed", n)
	}
	require.NoError(t, c.put(key, []byte("the image")))
	_, ok := c.get(key)
	require.True(t, ok, "what is broken is replaced")
}

func TestCacheCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	require.Error(t, NewCache(file).put("k", []byte("x")))
	_, ok := NewCache(file).get("k")
	require.False(t, ok)
}

// Many processes may store the same image at once, and a reader always sees a complete one.
func TestCacheManyWriters(t *testing.T) {
	c := NewCache(t.TempDir())
	image := make([]byte, 1<<16)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := c.put("k", image); err != nil {
					t.Error(err)
				}
				if got, ok := c.get("k"); !ok || len(got) != len(image) {
					t.Error("no whole image after the first was written")
				}
			}
		})
	}
	wg.Wait()
}

func TestImageKey(t *testing.T) {
	require.NotEqual(t, imageKey("ab", "c"), imageKey("a", "bc"))
	require.NotEqual(t, imageKey("a"), imageKey("a", ""))
	require.Len(t, imageKey(), 64)
}

// Images go to the cache directory that the user or a launcher has chosen.
func TestUserCache(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(userfiles.EnvCache, dir)
	require.Equal(t, NewCache(filepath.Join(dir, "kernels")), UserCache())
}

// A killed process leaves an incomplete image behind, and the next one that stores an image
// removes it.
func TestCacheSweeps(t *testing.T) {
	c := NewCache(t.TempDir())
	left := filepath.Join(c.dir, ".new-1")
	require.NoError(t, os.WriteFile(left, []byte("x"), 0o600))
	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(left, old, old))
	require.NoError(t, c.put("k", []byte("x")))
	require.NoFileExists(t, left)
	_, ok := c.get("k")
	require.True(t, ok)
}
