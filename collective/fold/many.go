package fold

import "math/bits"

// SumAll sets dst[i] = (operands[0][i] + operands[1][i] + ...) * by for every i, adding
// one operand at a time. The bits equal those of Into over all operands in order followed
// by Scale, but SumAll passes over memory once. There are at least two operands, each as
// long as dst. dst may be any of the operands, but no slice may partly overlap another.
// SumAll does not allocate.
func SumAll(dst []float32, operands [][]float32, by float32) {
	_ = operands[1]
	checkLengths(dst, operands)
	lo := 0
	if len(dst) >= few {
		lo = fastSumAll(dst, operands, by)
	}
	sumEach(dst, operands, by, lo)
}

// MeanAll sets dst[i] to the mean of operands[0][i], operands[1][i] and so on: the
// exact sum, divided and truncated. There is at least one operand, each as long as
// dst. dst may be any of the operands, but no slice may partly overlap another.
// MeanAll does not allocate.
func MeanAll[T int32 | int64 | uint8](dst []T, operands [][]T) {
	_ = operands[0]
	checkLengths(dst, operands)
	switch dst := any(dst).(type) {
	case []int32:
		operands := any(operands).([][]int32)
		meanEach(dst, operands, fastMeanInt32(dst, operands))
	case []uint8:
		operands := any(operands).([][]uint8)
		meanEach(dst, operands, fastMeanUint8(dst, operands))
	case []int64:
		meanWide(dst, any(operands).([][]int64))
	}
}

// checkLengths panics if an operand is shorter than dst. The kernels check
// only the length of dst.
func checkLengths[T Number](dst []T, operands [][]T) {
	for _, x := range operands {
		_ = x[:len(dst)]
	}
}

// few is the number of elements from which sumEach works in pieces. Fewer would not be worth
// clearing its room.
const few = 8

// sumEach is SumAll from element lo on. It works in pieces and writes a piece only after
// reading all of its operands, so that dst may be an operand.
func sumEach(dst []float32, operands [][]float32, by float32, lo int) {
	if len(dst)-lo < few {
		sumFew(dst, operands, by, lo)
		return
	}
	var room [256]float32
	for lo < len(dst) {
		hi := min(lo+len(room), len(dst))
		acc := room[:hi-lo]
		SumInto(acc, operands[0][lo:hi], operands[1][lo:hi])
		for _, x := range operands[2:] {
			SumInto(acc, acc, x[lo:hi])
		}
		if by != 1 {
			Scale(acc, by)
		}
		copy(dst[lo:], acc)
		lo = hi
	}
}

// sumFew is sumEach, element by element.
func sumFew(dst []float32, operands [][]float32, by float32, lo int) {
	for i := lo; i < len(dst); i++ {
		sum := operands[0][i]
		for _, x := range operands[1:] {
			y := x[i]
			r := sum + y
			if r != r {
				r = nan32(sum, y)
			}
			sum = r
		}
		if by != 1 {
			r := sum * by
			if r != r {
				r = nan32(sum, by)
			}
			sum = r
		}
		dst[i] = sum
	}
}

// meanEach is MeanAll from element lo on, for types whose sums fit into 64 bits.
func meanEach[T int32 | uint8](dst []T, operands [][]T, lo int) {
	for i := lo; i < len(dst); i++ {
		sum := int64(0)
		for _, x := range operands {
			sum += int64(x[i])
		}
		dst[i] = T(sum / int64(len(operands)))
	}
}

// meanWide is MeanAll for 64-bit integers, with 128-bit sums.
func meanWide(dst []int64, operands [][]int64) {
	for i := range dst {
		var hi, lo, carry uint64
		for _, x := range operands {
			v := x[i]
			lo, carry = bits.Add64(lo, uint64(v), 0)
			hi, _ = bits.Add64(hi, uint64(v>>63), carry)
		}
		negative := int64(hi) < 0
		if negative {
			lo, carry = bits.Sub64(0, lo, 0)
			hi, _ = bits.Sub64(0, hi, carry)
		}
		q, _ := bits.Div64(hi, lo, uint64(len(operands))) // the mean fits into 64 bits, so hi < len(operands)
		if negative {
			q = -q
		}
		dst[i] = int64(q)
	}
}
