//go:build race

package sgemm

import (
	"runtime"
	"unsafe"
)

// announce tells the race detector what a product reads and writes, because it cannot see
// into assembly.
func announce(c, a, b Matrix, s Shape) {
	each := func(m Matrix, rows, columns int, f func(unsafe.Pointer, int)) {
		if m.Transposed {
			rows, columns = columns, rows
		}
		for i := range rows {
			if columns > 0 {
				f(unsafe.Pointer(&m.Data[i*m.Stride]), 4*columns)
			}
		}
	}
	each(a, s.M, s.K, runtime.RaceReadRange)
	each(b, s.K, s.N, runtime.RaceReadRange)
	each(c, s.M, s.N, runtime.RaceWriteRange)
}
