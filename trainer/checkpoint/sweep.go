package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ringtrain/ringtrain/trainer/atomicfile"
)

// extension is the suffix of checkpoint names.
const extension = ".safetensors"

// Sweep removes from a directory the temporary files of runs that were killed while
// writing a checkpoint. gone reports whether a run, identified by its Writer.Run, has
// certainly ended. The files of other runs stay.
func Sweep(dir string, gone func(run string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if run, ok := atomicfile.Tag(e.Name(), extension); ok && gone(run) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, fmt.Errorf("checkpoint: %w", err))
			}
		}
	}
	return errors.Join(errs...)
}
