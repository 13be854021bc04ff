//go:build !unix

package userfiles

import "io/fs"

const noFollow = 0

// Own is true: the mode of a file contains no permissions, and each user has a separate
// temporary directory.
func Own(_ fs.FileInfo, _ fs.FileMode) bool { return true }
