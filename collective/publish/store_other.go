//go:build !amd64 || noasm || race

package publish

import "sync/atomic"

// Store stores value after everything stored before it, like [sync/atomic.StoreUint64].
func Store(word *uint64, value uint64) { atomic.StoreUint64(word, value) }

// Fence waits until others can see all earlier stores. Store has already waited here.
func Fence() {}

// LoadLast loads a word after all earlier loads, of any kind. If the result does not yet
// include another side's [sync/atomic.AddUint64], the earlier loads have seen nothing
// that the other side stored after that addition.
func LoadLast(word *uint64) uint64 { return atomic.AddUint64(word, 0) } // a plain load could be reordered before older loads
