//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package data

import "os"

// tryLock claims success: this system has no lock that ends with its process.
// The cache stays correct without one, because directories appear in it by
// rename; two processes may then both do the work, and one result is dropped.
func tryLock(*os.File) (bool, error) { return true, nil }
