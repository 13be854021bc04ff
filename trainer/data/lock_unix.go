//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package data

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes an exclusive lock on an open file, or says that another process
// (or another open of the file in this one) has it. The lock ends with the file's Close, or
// with the process, however that ends.
func tryLock(f *os.File) (bool, error) {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EWOULDBLOCK:
			return false, nil
		case unix.EINTR:
		default:
			return false, err
		}
	}
}
