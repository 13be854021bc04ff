package data

// Shard returns the contiguous rows [lo, hi) that rank evaluates, of a test set with
// total rows divided among size ranks. Each row belongs to exactly one rank. Shares
// differ by at most one row, and the first ranks have the larger ones. If there are
// fewer rows than ranks, some shares are empty. Scores of shards are counts, which add
// up over the ranks.
func Shard(total, rank, size int) (lo, hi int) {
	share, rest := total/size, total%size
	lo = rank*share + min(rank, rest)
	hi = lo + share
	if rank < rest {
		hi++
	}
	return lo, hi
}

// Range appends the rows lo .. hi-1 to dst, for passing part of a Shard to
// [Images.Gather].
func Range(dst []int32, lo, hi int) []int32 {
	for r := lo; r < hi; r++ {
		dst = append(dst, int32(r))
	}
	return dst
}
