//go:build !linux

package machine

import (
	"io/fs"
	"runtime"
)

// inquire adds the system's name. Only Go's own figures are known here.
func (m *Machine) inquire(fs.FS) { m.Kernel = runtime.GOOS }
