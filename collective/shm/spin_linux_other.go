//go:build linux && (!amd64 || noasm)

package shm

import (
	"sync/atomic"
	"unsafe"
)

// spin looks at a word until it is at least least, most times at most. It
// reports whether it is.
func spin(word *uint64, least uint64, most int) bool {
	for range most {
		if atomic.LoadUint64(word) >= least {
			return true
		}
	}
	return false
}

// core would be the core that this goroutine is on just now.
func core() uint64 { return 0 }

func tellsCore() bool { return false }

// transfer copies n bytes. The two do not overlap.
func transfer(to, from *byte, n int) { copy(unsafe.Slice(to, n), unsafe.Slice(from, n)) }
