//go:build !noasm

package shm

// spin polls a word until it is at least least, at most most times, with a
// PAUSE between polls. It reports whether the word got there. The runtime
// cannot preempt a goroutine in it, so most must be small.
func spin(word *uint64, least uint64, most int) bool

// core returns 1 + the number of the core that this goroutine runs on now. It
// works only if tellsCore.
func core() uint64

// tellsCore reports whether the processor supports core.
func tellsCore() bool

// moveString copies n bytes by REP MOVSB. The two do not overlap.
//
//go:noescape
func moveString(to, from *byte, n int)
