package data

import (
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes an exclusive lock on an open file. It returns false if another process (or
// another open file in this one) holds the lock. The lock ends when the file is closed or
// the process ends.
func tryLock(f *os.File) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	switch err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped)); err {
	case nil:
		return true, nil
	case windows.ERROR_LOCK_VIOLATION:
		return false, nil
	default:
		return false, err
	}
}
