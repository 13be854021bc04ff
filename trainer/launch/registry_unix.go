//go:build unix

package launch

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ownedByUser reports whether a directory belongs to this user and no other user can
// write to it. The check matters for root, which may run with another user's environment.
func ownedByUser(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid()
}

// checkPrivate returns an error if another user can read or change a directory.
func checkPrivate(path string, info fs.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user; have it removed", path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is accessible to other users; run chmod 700 on it", path)
	}
	return nil
}
