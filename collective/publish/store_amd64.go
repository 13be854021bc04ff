//go:build !noasm && !race

package publish

import "sync/atomic"

// Store stores value after everything stored before it, like
// [sync/atomic.StoreUint64]. Unlike that, it does not delay later loads until others
// can see value. If two sides each store one word and then load the other's, use
// sync/atomic, or call [Fence] in between.
//
//go:noescape
func Store(word *uint64, value uint64)

// Prefetches reports whether Prefetch does anything.
const Prefetches = true

// Prefetch begins to fetch the cache lines of memory, at least one, for writing. Other
// cores then need not give them up when they are written. Processors that do not have the
// instruction ignore it.
//
//go:noescape
func Prefetch(memory []byte)

// Fence waits until others can see all earlier stores, before any later load.
func Fence()

// LoadLast loads a word after all earlier loads, of any kind. If the result does not yet
// include another side's [sync/atomic.AddUint64], the earlier loads have seen nothing
// that the other side stored after that addition.
func LoadLast(word *uint64) uint64 { return atomic.LoadUint64(word) } // amd64 never reorders loads
