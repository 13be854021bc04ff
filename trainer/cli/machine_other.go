//go:build !linux

package cli

import "runtime"

// inquire has nobody to ask: what Go knows by itself is all.
func (m *machine) inquire() { m.Kernel = runtime.GOOS }
