//go:build linux && (!amd64 || noasm)

package shm

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// spin polls a word until it is at least least, at most most times. It reports
// whether the word got there.
func spin(word *uint64, least uint64, most int) bool {
	for range most {
		if atomic.LoadUint64(word) >= least {
			return true
		}
	}
	return false
}

// yield yields the core until a word is at least least, at most most times. It reports
// whether the word got there before the last yield.
func yield(word *uint64, least uint64, most int) bool {
	for range most {
		if atomic.LoadUint64(word) >= least {
			return true
		}
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	return false
}

// core would return the core that this goroutine runs on; it is unknown here.
func core() uint64 { return 0 }

func tellsCore() bool { return false }

// moveString copies n bytes. The two do not overlap.
func moveString(to, from *byte, n int) { copy(unsafe.Slice(to, n), unsafe.Slice(from, n)) }

// moveStream copies n bytes. The two do not overlap.
func moveStream(to, from *byte, n int) { copy(unsafe.Slice(to, n), unsafe.Slice(from, n)) }

// flushLine would remove the line of a word from all caches.
func flushLine(*uint64) {}

// loadTicks would return how long it takes to load a word; it is unknown here.
func loadTicks(*uint64) uint64 { return 0 }
