//go:build !amd64 || noasm || race

package publish

import "sync/atomic"

// Store is [sync/atomic.StoreUint64].
func Store(word *uint64, value uint64) { atomic.StoreUint64(word, value) }

// Prefetches reports whether Prefetch does anything.
const Prefetches = false

// Prefetch does nothing.
func Prefetch(memory []byte) {}

// Fence does nothing: a load of sync/atomic is never reordered before an earlier Store.
func Fence() {}

// LoadLast loads a word after all earlier loads, of any kind. If the result does not yet
// include another side's [sync/atomic.AddUint64], the earlier loads have seen nothing
// that the other side stored after that addition.
func LoadLast(word *uint64) uint64 { return atomic.AddUint64(word, 0) } // a plain load could be reordered before older loads
