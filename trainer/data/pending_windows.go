package data

import (
	"os"
	"path/filepath"
)

// newPending opens a file that takes path's place when it is closed. renameio
// leaves Windows out because a rename there may be seen half done after a power cut;
// between processes it is atomic.
func newPending(path string) (pending, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return nil, err
	}
	return &pendingFile{File: f, path: path}, nil
}

type pendingFile struct {
	*os.File
	path string
	done bool
}

// CloseAtomicallyReplace syncs, closes and renames the file.
func (f *pendingFile) CloseAtomicallyReplace() error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), f.path); err != nil {
		return err
	}
	f.done = true
	return nil
}

// Cleanup removes the file if it has not taken its place.
func (f *pendingFile) Cleanup() error {
	if f.done {
		return nil
	}
	_ = f.Close()
	return os.Remove(f.Name())
}
