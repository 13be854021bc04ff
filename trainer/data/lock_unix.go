//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package data

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes an exclusive lock on an open file. It returns false if another process (or
// another open file in this one) holds the lock. The lock ends when the file is closed or
// the process ends.
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
