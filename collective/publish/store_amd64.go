//go:build !noasm && !race

package publish

// Store stores value after all that was stored before it, as
// [sync/atomic.StoreUint64] does; a load that comes after it may be done before
// others can see it. Two words of which each side stores one and then loads the
// other's want sync/atomic, or [Fence] between.
//
//go:noescape
func Store(word *uint64, value uint64)

// Fence waits until others can see what was stored.
func Fence()
