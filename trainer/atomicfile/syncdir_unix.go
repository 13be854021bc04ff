//go:build !windows

package atomicfile

import (
	"errors"
	"os"
)

// SyncDir makes the names in a directory survive a power cut.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
