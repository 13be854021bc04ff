//go:build unix

package userfiles

import (
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes opening a link fail, and opening a pipe return.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// Own reports whether a file belongs to this user and grants other users none of the
// permissions in denied, such as 0o022.
func Own(info fs.FileInfo, denied fs.FileMode) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid() && info.Mode().Perm()&denied == 0
}
