package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// suffix ends the names of temporary files.
const suffix = ".tmp"

// syncBytes is how much is written between two syncs. A slow disk then reports
// progress every few seconds, instead of blocking for minutes in one sync at the
// end.
const syncBytes = 64 << 20

// Options says how a file is written. The zero value is right for most.
type Options struct {
	// Tag becomes part of the temporary file's name and says who writes it; see the
	// function Tag. It contains no dot.
	Tag string
	// Progress, if not nil, is told after each write and sync how many bytes were
	// written or synced since the last call. A disk that hangs makes no calls.
	Progress func(bytes int)
	// NoSync skips all syncs, for files that may be lost in a power cut.
	NoSync bool
}

// A File is the new content of a file, being written. It ends in Replace or
// Discard.
type File struct {
	file     *os.File
	path     string
	options  Options
	unsynced int
	replaced bool
}

// Create creates the temporary file, in the directory of path, which must exist.
// Errors of Create and of all methods leave out the temporary name, which means
// nothing to a user; wrap them with path.
func Create(path string, o Options) (*File, error) {
	dir, base := filepath.Split(path)
	if o.Tag != "" {
		base += "." + o.Tag
	}
	for {
		f, err := os.OpenFile(fmt.Sprintf("%s.%s.%08x%s", dir, base, rand.Uint32(), suffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, nameless(err)
		}
		return &File{file: f, path: path, options: o}, nil
	}
}

// WriteFile replaces the file at path by content.
func WriteFile(path string, content []byte, o Options) error {
	f, err := Create(path, o)
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = f.Replace()
	}
	if err != nil {
		return errors.Join(err, f.Discard())
	}
	return nil
}

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.file.Write(b)
	f.progress(n)
	if f.unsynced += n; err == nil && f.unsynced >= syncBytes {
		err = f.sync()
	}
	return n, nameless(err)
}

func (f *File) sync() error {
	if f.options.NoSync {
		return nil
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.progress(f.unsynced)
	f.unsynced = 0
	return nil
}

func (f *File) progress(bytes int) {
	if f.options.Progress != nil {
		f.options.Progress(bytes)
	}
}

// Replace makes what was written the content of the file. After an error the old
// content is still there, unless only the sync of the directory failed; call
// Discard.
func (f *File) Replace() error {
	if err := f.sync(); err != nil {
		return nameless(err)
	}
	if err := f.file.Close(); err != nil {
		return nameless(err)
	}
	if err := os.Rename(f.file.Name(), f.path); err != nil {
		return nameless(err)
	}
	f.replaced = true
	if f.options.NoSync {
		return nil
	}
	return SyncDir(filepath.Dir(f.path))
}

// Discard removes the temporary file. After Replace it does nothing, so it can be
// deferred.
func (f *File) Discard() error {
	if f.replaced {
		return nil
	}
	_ = f.file.Close() // fails if Replace has closed it
	return nameless(os.Remove(f.file.Name()))
}

// nameless returns the error without the name of the temporary file.
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

// Tag returns the Options.Tag in the name of a temporary file that a killed
// process has left behind. ext is the extension of the file that it was to
// replace. ok is false for any other name, and where there is no tag.
func Tag(name, ext string) (tag string, ok bool) {
	if !strings.HasPrefix(name, ".") || !strings.HasSuffix(name, suffix) {
		return "", false
	}
	_, rest, ok := strings.Cut(name, ext+".")
	parts := strings.Split(rest, ".") // tag, random number, "tmp"
	return parts[0], ok && len(parts) == 3 && parts[0] != ""
}
