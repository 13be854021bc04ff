package schedule

import "math/bits"

// Parent returns the rank to which a rank of a binomial tree sends what it has
// collected, and from which it receives the result. The parent of rank 0 is -1.
func Parent(rank int) int {
	if rank == 0 {
		return -1
	}
	return rank & (rank - 1)
}

// Children returns the number of ranks that send to a rank of a binomial tree
// over size ranks. The i-th child, from 0, is rank+1<<i. It collects the ranks
// from itself up to, but not including, its Through.
func Children(rank, size int) int {
	n := 0
	for rank+1<<n < size && (rank == 0 || n < bits.TrailingZeros(uint(rank))) {
		n++
	}
	return n
}

// Through returns the end of the range of ranks that a rank collects: [rank,
// Through).
func Through(rank, size int) int {
	if rank == 0 {
		return size
	}
	return min(size, rank+rank&-rank)
}

// collected returns the number of operands that all ranks together send up the
// tree.
func collected(size int) int {
	n := 0
	for r := 1; r < size; r++ {
		n += Through(r, size) - r
	}
	return n
}
