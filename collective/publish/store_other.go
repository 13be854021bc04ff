//go:build !amd64 || noasm || race

package publish

import "sync/atomic"

// Store stores value after all that was stored before it, as
// [sync/atomic.StoreUint64] does.
func Store(word *uint64, value uint64) { atomic.StoreUint64(word, value) }

// Fence waits until others can see what was stored, which Store has done here.
func Fence() {}
