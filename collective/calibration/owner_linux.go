package calibration

import (
	"io/fs"
	"os"
	"syscall"
)

// onlyOwnerWrites reports whether a file belongs to this user, and no other user can
// write it.
func onlyOwnerWrites(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid() && info.Mode().Perm()&0o022 == 0
}
