//go:build !windows

package data

import "github.com/google/renameio/v2"

// newPending opens a file that takes path's place when it is closed.
func newPending(path string) (pending, error) {
	return renameio.NewPendingFile(path, renameio.WithPermissions(0o644))
}
