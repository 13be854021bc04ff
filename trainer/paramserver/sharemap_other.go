//go:build !linux

package paramserver

import (
	"errors"
	"os"
)

// mapFile maps a file of this size.
func mapFile(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

// unmapFile undoes mapFile. mem may be nil.
func unmapFile([]byte) error { return nil }
