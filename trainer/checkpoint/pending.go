package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// tmpSuffix ends the names of files that are still being written.
const tmpSuffix = ".tmp"

// syncBytes is how much is written between two syncs. A disk that is slow to
// take what was written then shows it every few seconds, and not in one sync of
// minutes at the end.
const syncBytes = 64 << 20

// A pending is a file being written aside, to take the place of another whole.
type pending struct {
	*os.File
	path     string
	progress func(bytes int)
	unsynced int
	done     bool
}

// newPending opens a file in the directory of path, under a name that says which
// run it belongs to.
func newPending(path, run string, progress func(bytes int)) (*pending, error) {
	dir, base := filepath.Split(path)
	for {
		name := fmt.Sprintf("%s.%s.%s.%08x%s", dir, base, run, rand.Uint32(), tmpSuffix)
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, nameless(err)
		}
		return &pending{File: f, path: path, progress: progress}, nil
	}
}

// Write implements io.Writer.
func (p *pending) Write(b []byte) (int, error) {
	n, err := p.File.Write(b)
	p.progress(n)
	if p.unsynced += n; err == nil && p.unsynced >= syncBytes {
		err = p.sync()
	}
	return n, nameless(err)
}

func (p *pending) sync() error {
	if err := p.Sync(); err != nil {
		return err
	}
	p.progress(p.unsynced)
	p.unsynced = 0
	return nil
}

// replace syncs and closes the file, renames it to its path, and syncs the
// directory, so that the new name survives a power cut, too.
func (p *pending) replace() error {
	if err := p.sync(); err != nil {
		return nameless(err)
	}
	if err := p.Close(); err != nil {
		return nameless(err)
	}
	if err := os.Rename(p.Name(), p.path); err != nil {
		return nameless(err)
	}
	p.done = true
	return syncDir(filepath.Dir(p.path))
}

// cleanup removes the file if it has not taken its place.
func (p *pending) cleanup() error {
	if p.done {
		return nil
	}
	_ = p.Close()
	return os.Remove(p.Name())
}

// nameless is the error without the name of the file that is being written,
// which means nothing to a user.
func nameless(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return fmt.Errorf("%s: %w", path.Op, path.Err)
	case errors.As(err, &link):
		return fmt.Errorf("%s: %w", link.Op, link.Err)
	}
	return err
}

// runOf is the run whose file a name is while the file is being written.
func runOf(name string) (run string, ok bool) {
	if !strings.HasPrefix(name, ".") || !strings.HasSuffix(name, tmpSuffix) {
		return "", false
	}
	_, rest, ok := strings.Cut(name, ".safetensors.")
	run, _, more := strings.Cut(rest, ".")
	return run, ok && more && run != ""
}

// Sweep removes from a directory what runs have left that were killed while
// they wrote. gone reports whether a run, by its name in Writer.Run, is over for
// certain; the files of others stay.
func Sweep(dir string, gone func(run string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if run, ok := runOf(e.Name()); ok && gone(run) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, fmt.Errorf("checkpoint: %w", err))
			}
		}
	}
	return errors.Join(errs...)
}
