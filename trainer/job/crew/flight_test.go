package crew

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The newest flight records stay, and so do all other files.
func TestRemoveOldRecords(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "flight-of-the-bumblebee.json")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	path := func(i int) string { return filepath.Join(dir, fmt.Sprintf("flight-%016x-%d.json", 1000-i, i)) }
	for i := range 10 {
		require.NoError(t, os.WriteFile(path(i), nil, 0o600))
		at := time.Unix(int64(1000+i), 0)
		require.NoError(t, os.Chtimes(path(i), at, at))
	}
	removeOldRecords(dir, 3)
	require.FileExists(t, other)
	for i := range 10 {
		if i < 7 {
			require.NoFileExists(t, path(i))
		} else {
			require.FileExists(t, path(i))
		}
	}
	removeOldRecords(dir, 3)
	removeOldRecords(filepath.Join(dir, "none"), 3)
	require.FileExists(t, path(9))
}
