//go:build !noasm

package shm

// spin looks at a word until it is at least least, most times at most, with a
// PAUSE between two looks. It reports whether it is. The runtime cannot stop a
// goroutine inside, so most is small.
//
//go:noescape
func spin(word *uint64, least uint64, most int) bool

// core is 1 + the number of the core that this goroutine is on just now, if
// tellsCore.
func core() uint64

// tellsCore reports whether the processor can tell.
func tellsCore() bool

// transfer copies n bytes by REP MOVSB. The two do not overlap.
//
//go:noescape
func transfer(to, from *byte, n int)
