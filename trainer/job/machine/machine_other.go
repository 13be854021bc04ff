//go:build !linux

package machine

import "runtime"

// inquire adds the system's name. Only Go's own figures are known here.
func (m *Machine) inquire() { m.Kernel = runtime.GOOS }
