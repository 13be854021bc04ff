package schedule

import "math/bits"

// Parent is the rank to which a rank of a binomial tree sends what it has
// collected, and from which the result comes; -1 is that of rank 0.
func Parent(rank int) int {
	if rank == 0 {
		return -1
	}
	return rank & (rank - 1)
}

// Children are how many ranks send to a rank of a binomial tree of so many
// ranks. The i-th of them, from 0, is rank+1<<i, and collects the ranks up
// to its Through.
func Children(rank, size int) int {
	n := 0
	for rank+1<<n < size && (rank == 0 || n < bits.TrailingZeros(uint(rank))) {
		n++
	}
	return n
}

// Through is the end of the ranks that a rank collects: from itself up to and
// without it.
func Through(rank, size int) int {
	if rank == 0 {
		return size
	}
	return min(size, rank+rank&-rank)
}

// collected is how many operands all ranks together send up the tree.
func collected(size int) int {
	n := 0
	for r := 1; r < size; r++ {
		n += Through(r, size) - r
	}
	return n
}
