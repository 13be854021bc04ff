//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package data

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes an exclusive lock on an open file. It returns false if another process (or
// another open file in this one) holds the lock. The lock ends when the file is closed or
// the process ends. The error is errors.ErrUnsupported if the file system has no locks.
func tryLock(f *os.File) (bool, error) {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EINTR {
			return lockResult(err)
		}
	}
}

// lockResult returns the result of tryLock for that of flock. ENOSYS (Lustre) and EOPNOTSUPP
// are errors.ErrUnsupported already; ENOLCK (NFS without its lock daemon) is not.
func lockResult(err error) (bool, error) {
	switch err {
	case nil:
		return true, nil
	case unix.EWOULDBLOCK:
		return false, nil
	case unix.ENOLCK:
		return false, errors.ErrUnsupported
	default:
		return false, err
	}
}
