//go:build !windows

package checkpoint

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// newPending opens a file that takes path's place when it is closed. It lies in the
// same directory, so that what a killed writer leaves is found there.
func newPending(path string) (pending, error) {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o644))
	if err != nil {
		return nil, err
	}
	return synced{f, filepath.Dir(path)}, nil
}

// synced is a file whose new name survives a power cut, too.
type synced struct {
	*renameio.PendingFile
	dir string
}

// CloseAtomicallyReplace syncs the file, renames it and syncs the directory.
func (s synced) CloseAtomicallyReplace() error {
	if err := s.PendingFile.CloseAtomicallyReplace(); err != nil {
		return err
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
