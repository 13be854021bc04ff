//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package data

import "os"

// tryLock always succeeds: this system has no lock that ends with its process. The cache
// is still correct, because directories appear in it by rename. Two processes may then do
// the same work, and one result is dropped.
func tryLock(*os.File) (bool, error) { return true, nil }
