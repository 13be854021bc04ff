package schedule

import "math/bits"

// Rounds is the number of rounds of a dissemination barrier among size ranks:
// the logarithm to base 2, rounded up.
func Rounds(size int) int { return bits.Len(uint(max(size, 1) - 1)) }

// Round says whom a rank tells and whom it hears in the i-th round of a
// dissemination barrier (Hensgen, Finkel and Manber, 1988). After the last
// round every rank has heard, through others, from all.
func Round(rank, size, i int) (to, from int) {
	return mod(rank+1<<i, size), mod(rank-1<<i, size)
}

// Told is how many ranks' data a rank tells on in the i-th of the Rounds in which
// everybody learns everybody's (Bruck and others, 1997): its own and those of the
// ranks just below, to the rank that Round says.
func Told(size, i int) int { return min(1<<i, size-1<<i) }

// Pair says whom a rank sends to and whom it receives from in the i-th of the
// size-1 rounds, from 1, in which everybody sends to everybody. In each round
// a message is met by its receiver, so no rank waits in a circle even if a
// message is sent only when it is received.
func Pair(rank, size, i int) (to, from int) {
	return mod(rank+i, size), mod(rank-i, size)
}
