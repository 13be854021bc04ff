package fold

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// makeOperands returns size operands of n elements taken from numbers, each at a different
// offset in a cache line.
func makeOperands[T Number](numbers []T, size, n, shift int) [][]T {
	operands, stride := make([][]T, size), len(numbers)/size
	for i := range operands {
		operands[i] = numbers[i*stride+(shift+11*i)%offsets:][:n]
	}
	return operands
}

func clones[T any](operands [][]T) [][]T {
	list := make([][]T, len(operands))
	for i, x := range operands {
		list[i] = append([]T(nil), x...)
	}
	return list
}

// SumAll equals Into followed by Scale. dst is separate memory, and then
// each operand in turn.
func TestSumAllIsIntoAndScale(t *testing.T) {
	const maxSize = 7
	numbers := pool32(maxSize*(maxLength+offsets), seeded())
	for n := range maxLength + 1 {
		for _, size := range []int{2, 3, 4, maxSize} {
			by := []float32{1, 1 / float32(size), float32(math.Inf(-1))}[n%3]
			operands := makeOperands(numbers, size, n, n)
			want := make([]float32, n)
			foldFloats(Sum, want, operands[0], operands[1], nan32)
			for _, x := range operands[2:] {
				foldFloats(Sum, want, want, x, nan32)
			}
			scaleFloats(want, by, nan32)

			loop := make([]float32, n)
			sumEach(loop, operands, by, 0)
			same(t, want, loop, "loop, %d operands of %d", size, n)

			room := pool32(n+2*guard, seeded())
			blank := append([]float32(nil), room...)
			kept := clones(operands)
			SumAll(room[guard:][:n], operands, by)
			same(t, want, room[guard:][:n], "%d operands of %d by %v", size, n, by)
			same(t, blank[:guard], room[:guard], "before dst")
			same(t, blank[guard+n:], room[guard+n:], "after dst")
			for i := range operands {
				same(t, kept[i], operands[i], "operand %d changed", i)
				own := clones(operands)
				SumAll(own[i], own, by)
				same(t, want, own[i], "%d operands of %d, into number %d", size, n, i)
			}
		}
	}
}

// Long slices take several kernel calls. With more operands, each call has
// fewer elements.
func TestManyLongOperands(t *testing.T) {
	for _, c := range []struct{ size, n int }{{2, 1<<14 + 77}, {3, 1<<15 + 5}, {5, 20_001}, {700, 200}} {
		floats := makeOperands(pool32(c.size*(c.n+offsets), seeded()), c.size, c.n, 3)
		want, got := make([]float32, c.n), make([]float32, c.n)
		sumEach(want, floats, 1./3, 0)
		SumAll(got, floats, 1./3)
		same(t, want, got, "%d operands of %d", c.size, c.n)
		longMean[int32](t, c.size, c.n)
		longMean[uint8](t, c.size, c.n)
	}
}

func longMean[T int32 | uint8](t *testing.T, size, n int) {
	operands := makeOperands(poolIntegers[T](size*(n+offsets), seeded()), size, n, 3)
	want, got := make([]T, n), make([]T, n)
	meanEach(want, operands, 0)
	MeanAll(got, operands)
	same(t, want, got, "%d operands of %d %T", size, n, want)
}

func TestMeanAll(t *testing.T) {
	t.Run("int32", meanAll[int32])
	t.Run("int64", meanAll[int64])
	t.Run("uint8", meanAll[uint8])
}

// meanAll compares means with those of big integers.
func meanAll[T integer](t *testing.T) {
	const maxSize = 5
	numbers := poolIntegers[T](maxSize*(maxLength+offsets), seeded())
	sum, operand := new(big.Int), new(big.Int)
	for n := range maxLength + 1 {
		for _, size := range []int{1, 2, 3, maxSize} {
			operands := makeOperands(numbers, size, n, n)
			want := make([]T, n)
			for i := range want {
				sum.SetInt64(0)
				for _, x := range operands {
					sum.Add(sum, operand.SetInt64(int64(x[i])))
				}
				want[i] = T(sum.Quo(sum, operand.SetInt64(int64(size))).Int64())
			}
			room := poolIntegers[T](n+2*guard, seeded())
			blank := append([]T(nil), room...)
			MeanAll(room[guard:][:n], operands)
			same(t, want, room[guard:][:n], "%d operands of %d", size, n)
			same(t, blank[:guard], room[:guard], "before dst")
			same(t, blank[guard+n:], room[guard+n:], "after dst")
			for i := range operands {
				own := clones(operands)
				MeanAll(own[i], own)
				same(t, want, own[i], "%d operands of %d, into number %d", size, n, i)
			}
		}
	}
}

// Test every sum that up to 48 bytes can have.
func TestMeanOfBytesOfEverySum(t *testing.T) {
	for size := 1; size <= 48; size++ {
		n := 255*size + 1
		operands := make([][]uint8, size)
		for i := range operands {
			operands[i] = make([]uint8, n)
			for sum := range n {
				operands[i][sum] = uint8(min(max(sum-255*i, 0), 255))
			}
		}
		got := make([]uint8, n)
		MeanAll(got, operands)
		for sum, mean := range got {
			if int(mean) != sum/size {
				require.Equal(t, sum/size, int(mean), "%d / %d", sum, size)
			}
		}
	}
}

// Large means next to a multiple of the divisor are the hardest for a reciprocal. Test up
// to the kernels' maximum number of operands, and beyond.
func TestMeanNextToMultiples(t *testing.T) {
	for _, size := range []int{2, 3, 49, 1 << 10, 4095, 4096, 4097, 1<<16 - 1, 1 << 16, 1<<16 + 1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			nextToMultiples(t, size, []int32{math.MaxInt32, math.MaxInt32 - 1, math.MinInt32, math.MinInt32 + 1, 1, -1, 0, 1 << 30})
			nextToMultiples(t, size, []uint8{255, 254, 128, 127, 3, 1, 0, 100})
		})
	}
}

// nextToMultiples takes the mean of operands that are equal except for the last, which is
// equal, one lower and one higher in turn.
func nextToMultiples[T int32 | uint8](t *testing.T, size int, values []T) {
	operands := make([][]T, size)
	for i := range operands {
		operands[i] = values
	}
	for _, step := range []int64{0, -1, 1} {
		last := append([]T(nil), values...)
		for i := range last {
			last[i] += T(step) // some wrap around, which moves the sum further
		}
		operands[size-1] = last
		got := make([]T, len(values))
		MeanAll(got, operands)
		for i, v := range values {
			want := T((int64(v)*int64(size-1) + int64(last[i])) / int64(size))
			require.Equal(t, want, got[i], "%d operands of %T %d, the last %d", size, v, v, last[i])
		}
	}
}

func TestOperandLengthsAreChecked(t *testing.T) {
	long, short := make([]float32, 64), make([]float32, 63)
	require.Panics(t, func() { SumAll(long, [][]float32{long, short}, 1) })
	require.Panics(t, func() { SumAll(long, [][]float32{long}, 1) })
	require.Panics(t, func() { MeanAll(make([]int32, 64), [][]int32{make([]int32, 64), make([]int32, 63)}) })
	require.Panics(t, func() { MeanAll[uint8](nil, nil) })
}
