//go:build unix

package data

import (
	"os"
	"syscall"
)

// ownedByUser reports whether a file belongs to this user and nobody else can access it.
func ownedByUser(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
