package collective

import "math"

// pieceBounds returns the first element and the length of a rank's piece:
// counts[rank] elements, or each if counts is nil.
func pieceBounds(counts []int, each, rank int) (lo, n int) {
	if counts == nil {
		return rank * each, each
	}
	for _, c := range counts[:rank] {
		lo += c
	}
	return lo, counts[rank]
}

// digestCounts returns the FNV-1a hash by which ranks compare the counts of a V
// operation. 0 stands for equal pieces.
func digestCounts(counts []int) uint32 {
	if counts == nil {
		return 0
	}
	h := uint32(2166136261)
	for _, c := range counts {
		for shift := 0; shift < 64; shift += 8 {
			h = (h ^ uint32(c>>shift)&math.MaxUint8) * 16777619
		}
	}
	return h
}

func total(counts []int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}
