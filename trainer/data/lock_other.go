//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package data

import (
	"errors"
	"os"
)

// tryLock always fails: this system has no lock that ends with its process.
func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
