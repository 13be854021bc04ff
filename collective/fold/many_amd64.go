//go:build !noasm && !race

package fold

// The mean kernels multiply by a reciprocal. Their results are exact up to this many
// operands: the error of one product, |mean| / 2^52 for int32 and |mean| / 2^23 for
// uint8, is smaller than the margin of half of 1 / operands.
const (
	maxMeanInt32 = 1 << 16
	maxMeanUint8 = 1 << 12
)

// blockMean is the block size of the mean kernels. A register holds the sums of 8
// elements of uint8, or of 4 of int32.
const blockMean = 8

// fastSumAll sums the leading elements and returns their number.
func fastSumAll(dst []float32, operands [][]float32, by float32) int {
	n := whole(len(dst), block32, hasAVX2)
	step := stretchOf(len(operands))
	for lo := 0; lo < n; lo += step {
		sumAll32(dst, operands, by, lo, min(lo+step, n))
	}
	return n
}

// fastMeanInt32 averages the leading elements and returns their number.
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

// stretchOf divides stretch by the number of operands and rounds it to a multiple
// of every block size.
func stretchOf(operands int) int {
	const tile = 64 // the largest number of elements in one iteration of a kernel
	return max(stretch/operands&^(tile-1), tile)
}
