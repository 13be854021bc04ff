package launch

import (
	"io/fs"
	"os"
)

// ownedByUser takes a directory for the user's: each has one for temporary files.
func ownedByUser(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// checkPrivate leaves the rights of a directory to the user.
func checkPrivate(string, fs.FileInfo) error { return nil }
