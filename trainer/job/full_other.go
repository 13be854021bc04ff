//go:build !windows

package job

import (
	"errors"
	"syscall"
)

// isFull reports whether an error says that a disk or a quota is full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
