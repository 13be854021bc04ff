//go:build !amd64 || noasm || race

package publish

import "sync/atomic"

// Store stores value after all that was stored before it, as
// [sync/atomic.StoreUint64] does.
func Store(word *uint64, value uint64) { atomic.StoreUint64(word, value) }

// Fence waits until others can see what was stored, which Store has done here.
func Fence() {}

// LoadLast loads a word after all that was loaded before it, of whatever kind. If
// it does not yet see what somebody has added by [sync/atomic.AddUint64], those
// loads have seen nothing that was stored after that.
func LoadLast(word *uint64) uint64 { return atomic.AddUint64(word, 0) } // a load could come before older loads
