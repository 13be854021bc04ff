package schedule

import "math/bits"

// Rounds returns the number of rounds of a dissemination barrier among size
// ranks: the logarithm to base 2, rounded up.
func Rounds(size int) int { return bits.Len(uint(max(size, 1) - 1)) }

// Round returns the ranks that a rank sends to and receives from in the i-th
// round of a dissemination barrier (Hensgen, Finkel and Manber, 1988). After
// the last round, every rank has heard from all others, directly or indirectly.
func Round(rank, size, i int) (to, from int) {
	return mod(rank+1<<i, size), mod(rank-1<<i, size)
}

// Told returns the number of ranks whose data a rank forwards in the i-th of
// the Rounds of an all-to-all exchange (Bruck and others, 1997). They are its
// own data and those of the ranks just below it. They go to the rank that Round
// returns.
func Told(size, i int) int { return min(1<<i, size-1<<i) }

// Pair returns the ranks that a rank sends to and receives from in the i-th of
// the size-1 rounds, from 1, in which every rank sends to every other. In each
// round, every message has a receiver that expects it. So there is no deadlock,
// even if a message leaves only when it is received.
func Pair(rank, size, i int) (to, from int) {
	return mod(rank+i, size), mod(rank-i, size)
}
