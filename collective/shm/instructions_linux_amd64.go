//go:build !noasm

package shm

// spin polls a word until it is at least least, at most most times, with a
// PAUSE between polls. It reports whether the word got there. The runtime
// cannot preempt a goroutine in it, so most must be small.
func spin(word *uint64, least uint64, most int) bool

// yield yields the core until a word is at least least, at most most times. It reports
// whether the word got there before the last yield. The kernel forgets where calls return
// to when it switches processes, so every return up to the caller is slow after that, and
// RawSyscall would add three. The runtime cannot preempt a goroutine in it, so most must be
// small.
//
//go:noescape
func yield(word *uint64, least uint64, most int) bool

// core returns 1 + the number of the core that this goroutine runs on now. It
// works only if tellsCore.
func core() uint64

// tellsCore reports whether the processor supports core.
func tellsCore() bool

// moveString copies n bytes by REP MOVSB. The two do not overlap.
//
//go:noescape
func moveString(to, from *byte, n int)

// moveStream copies n bytes with non-temporal stores, and makes them visible before what this
// goroutine stores later. The two do not overlap.
//
//go:noescape
func moveStream(to, from *byte, n int)

// flushLine removes the line of a word from all caches.
//
//go:noescape
func flushLine(word *uint64)

// loadTicks returns how long it takes to load a word, in ticks of the processor's counter.
//
//go:noescape
func loadTicks(word *uint64) uint64
