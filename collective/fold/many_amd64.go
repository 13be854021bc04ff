//go:build !noasm && !race

package fold

// The kernels of means multiply by a reciprocal, which is exact up to so many
// operands: an error of one product, |mean| / 2^52 for int32 and |mean| / 2^23
// for uint8, stays below the half of 1 / operands that there is room for.
const (
	maxMeanInt32 = 1 << 16
	maxMeanUint8 = 1 << 12
)

// blockMean is what kernels of means take multiples of: a register has the sums
// of 8 elements of uint8, and of 4 of int32.
const blockMean = 8

// fastSumAll sums the first elements and returns how many.
func fastSumAll(dst []float32, operands [][]float32, by float32) int {
	n := whole(len(dst), block32, hasAVX2)
	step := stretchOf(len(operands))
	for lo := 0; lo < n; lo += step {
		sumAll32(dst, operands, by, lo, min(lo+step, n))
	}
	return n
}

// fastMeanInt32 is MeanAll of the first elements and returns how many.
func fastMeanInt32(dst []int32, operands [][]int32) int {
	n := whole(len(dst), blockMean, hasAVX2 && len(operands) <= maxMeanInt32)
	step := stretchOf(len(operands))
	for lo := 0; lo < n; lo += step {
		meanAllInt32(dst, operands, 1/float64(len(operands)), lo, min(lo+step, n))
	}
	return n
}

// fastMeanUint8 is fastMeanInt32 for uint8.
func fastMeanUint8(dst []uint8, operands [][]uint8) int {
	n := whole(len(dst), blockMean, hasAVX2 && len(operands) <= maxMeanUint8)
	step := stretchOf(len(operands))
	for lo := 0; lo < n; lo += step {
		meanAllUint8(dst, operands, 1/float32(len(operands)), lo, min(lo+step, n))
	}
	return n
}

// stretchOf is stretch shared by so many operands, a multiple of all blocks.
func stretchOf(operands int) int {
	const tile = 64 // what a turn of a kernel takes at most
	return max(stretch/operands&^(tile-1), tile)
}
