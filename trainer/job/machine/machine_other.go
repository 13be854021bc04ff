//go:build !linux

package machine

import "runtime"

// inquire has nobody to ask: what Go knows by itself is all.
func (m *Machine) inquire() { m.Kernel = runtime.GOOS }
