//go:build !noasm && !race

package publish

import "sync/atomic"

// Store stores value after all that was stored before it, as
// [sync/atomic.StoreUint64] does; a load that comes after it may be done before
// others can see it. Two words of which each side stores one and then loads the
// other's want sync/atomic, or [Fence] between.
//
//go:noescape
func Store(word *uint64, value uint64)

// Fence waits until others can see what was stored.
func Fence()

// LoadLast loads a word after all that was loaded before it, of whatever kind. If
// it does not yet see what somebody has added by [sync/atomic.AddUint64], those
// loads have seen nothing that was stored after that.
func LoadLast(word *uint64) uint64 { return atomic.LoadUint64(word) }
