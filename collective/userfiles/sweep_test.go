package userfiles

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	make := func(name string, age time.Duration) {
		path, at := filepath.Join(dir, name), time.Now().Add(-age)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	for name, age := range map[string]time.Duration{"a.1.tmp": 2 * staleAge, "b.1.tmp": 2 * staleAge, "a.2.tmp": staleAge / 2, "a": 2 * staleAge, "c.1.tmp": 2 * staleAge} {
		make(name, age)
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a.3.tmp"), 0o700))
	require.NoError(t, os.Chtimes(filepath.Join(dir, "a.3.tmp"), time.Unix(1, 0), time.Unix(1, 0)))
	Sweep(dir, "a.*.tmp", "b.*.tmp")
	var left []string
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	require.Equal(t, []string{"a", "a.2.tmp", "a.3.tmp", "c.1.tmp"}, left)
	Sweep(filepath.Join(dir, "missing"), "*")
}
