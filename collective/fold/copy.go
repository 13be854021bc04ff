package fold

import "runtime"

const (
	// mostCached is less than the megabyte from which the runtime's copy uses non-temporal stores.
	mostCached = 256 << 10
	// copyTurn is how many bytes are copied before other goroutines may run. It is long enough
	// for non-temporal stores.
	copyTurn = 1 << 20
)

// Copy copies src to dst, which must not be shorter and must not overlap it unless both begin at
// one address. It leaves what it stored last in the caches, as memcpy does. The built-in copy
// stores a megabyte or more past them, so that whoever reads it next waits for memory.
func Copy(dst, src []byte) { copyParts(dst, src, mostCached) }

// CopyPast is Copy past the caches, as the built-in copy does it. It takes less time for pieces of
// many megabytes that are not read at once.
func CopyPast(dst, src []byte) { copyParts(dst, src, copyTurn) }

// copyParts copies in parts of some bytes, and lets other goroutines run. The runtime cannot
// interrupt the built-in copy, and while the garbage collector waits for it, no goroutine of
// the process runs: a rank that copies gigabytes at once sends no heartbeats, and seems dead to
// the others.
func copyParts(dst, src []byte, part int) {
	for copied := 0; len(src) > 0; {
		if copied >= copyTurn {
			runtime.Gosched()
			copied = 0
		}
		n := copy(dst, src[:min(part, len(src))])
		dst, src, copied = dst[n:], src[n:], copied+n
	}
}
