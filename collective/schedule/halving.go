package schedule

import "math/bits"

// halving is recursive vector halving with distance doubling, and back
// (Rabenseifner, 2004). In each round, a rank keeps one half of what it has,
// sends the other half to its partner, and combines what the partner sends. At
// the end, each rank has one complete piece. Then the rounds run backwards to
// gather the pieces. The largest halves go to the nearest ranks.
//
// If size is not a power of two, the extra ranks are folded in first, as in
// MPICH. Of the first 2*(size-power) ranks, each even one gives all it has to
// the next rank, waits, and gets the result from there.
func (c *moveList) halving(rank, size int, whole extent) {
	power := 1 << (bits.Len(uint(size)) - 1)
	extra := size - power
	if rank < 2*extra {
		if rank%2 == 0 {
			c.exchange(rank+1, whole, noPeer, extent{}, 0)
			c.exchange(noPeer, extent{}, rank+1, whole, Keep)
			return
		}
		c.exchange(noPeer, extent{}, rank-1, whole, Combine)
	}
	position := rank - extra // among the power ranks that take part
	if rank < 2*extra {
		position = rank / 2
	}
	c.rounds(position, power, extra, whole)
	if rank < 2*extra {
		c.exchange(rank-1, whole, noPeer, extent{}, 0)
	}
}

// rounds adds the rounds of the power ranks that take part, among which this
// rank has the given position.
func (c *moveList) rounds(position, power, extra int, whole extent) {
	ranked := func(position int) int {
		if position < extra {
			return 2*position + 1
		}
		return position + extra
	}
	mine := whole
	for distance := 1; distance < power; distance *= 2 {
		partner := ranked(position ^ distance)
		theirs, kept := mine.part(1, 2), mine.part(0, 2)
		if position&distance != 0 {
			theirs, kept = kept, theirs
		}
		c.exchange(partner, theirs, partner, kept, Combine)
		mine = kept
	}
	c.finish(mine)
	for distance := power / 2; distance > 0; distance /= 2 {
		partner := ranked(position ^ distance)
		both := whole // what the two ranks held together before they split it in that round
		for d := 1; d < distance; d *= 2 {
			both = both.part(min(position&d, 1), 2)
		}
		theirs := both.part(1-min(position&distance, 1), 2)
		c.exchange(partner, mine, partner, theirs, Keep)
		mine = both
	}
}
