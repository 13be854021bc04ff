package data

// Shard returns the contiguous rows [lo, hi) that rank evaluates of a test set
// of total rows divided among size ranks. Over all ranks each row occurs once;
// shares differ by one row at most, the first ranks having the larger ones, and are empty
// for ranks that find no row left. Scores of shards are counts, added up over the ranks.
func Shard(total, rank, size int) (lo, hi int) {
	share, rest := total/size, total%size
	lo = rank*share + min(rank, rest)
	hi = lo + share
	if rank < rest {
		hi++
	}
	return lo, hi
}

// Range appends the rows lo .. hi-1 to dst and returns it, for passing a part
// of a Shard to [Images.Gather].
func Range(dst []int32, lo, hi int) []int32 {
	for r := lo; r < hi; r++ {
		dst = append(dst, int32(r))
	}
	return dst
}
