// Package fold is the arithmetic of reductions.
//
// The Go loops here define every result: they round to nearest even and use no fused
// multiply-add, integers wrap, and Min and Max are IEEE 754-2019 minimum and maximum (a
// NaN operand gives NaN, and -0 is less than +0).
//
// NaN is defined to the bit, for all operations and all processors. The result is the
// first operand that is NaN, made quiet, with its sign and payload. A NaN computed from
// numbers, as in Inf - Inf, has the sign bit set and only the quiet bit in its payload.
//
// On amd64 with AVX2, and on arm64, assembly handles most of a slice. Its results are
// the same in every bit:
//
//	                                  Sum  Min  Max  Prod  Scale  SumAll  MeanAll
//	float32                           yes  yes  yes  yes   yes    yes     -
//	float64                           yes  yes  yes  yes   yes    -       -
//	int32, uint8                      yes  yes  yes  yes   no     -       AVX2
//	int64                             yes  AVX2 AVX2 AVX2  no     -       no
//
// "no" means that only the loop exists: reductions do not scale integers, and the mean
// of int64 needs 128-bit sums. 16-bit floats are converted to float32 by Widen and
// then folded. Widen and Round have kernels for both formats; on amd64, those for Half
// need F16C. The build tag noasm disables all assembly, and so does the race detector,
// which cannot see into it.
package fold

//go:generate go -C ../../tools run ./foldgen -out ../collective/fold/kernels_amd64.s -stubs ../collective/fold/kernels_amd64.go -pkg fold
//go:generate go -C ../../tools run ./neonfoldgen -out ../collective/fold/kernels_arm64.s -stubs ../collective/fold/kernels_arm64.go

// Op is an operation that combines two operands into one.
type Op uint8

// The operations.
const (
	Sum Op = iota
	Min
	Max
	Prod
)

// Number is the constraint for element types that can be folded.
type Number interface {
	float32 | float64 | int32 | int64 | uint8
}

// Into sets dst[i] = a[i] op b[i] for every i < len(dst). a is the result so far and b
// the next operand. The three slices have the same length. dst may be a or b itself, but
// no slice may partly overlap another. Into does not allocate.
func Into[T Number](op Op, dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	switch dst := any(dst).(type) {
	case []float32:
		a, b := any(a).([]float32), any(b).([]float32)
		if op == Sum {
			SumInto(dst, a, b)
			return
		}
		done := fast32(op, dst, a, b)
		foldFloats(op, dst[done:], a[done:], b[done:], nan32)
	case []float64:
		a, b := any(a).([]float64), any(b).([]float64)
		done := fast64(op, dst, a, b)
		foldFloats(op, dst[done:], a[done:], b[done:], nan64)
	case []int32:
		a, b := any(a).([]int32), any(b).([]int32)
		done := fastInt32(op, dst, a, b)
		foldIntegers(op, dst[done:], a[done:], b[done:])
	case []int64:
		a, b := any(a).([]int64), any(b).([]int64)
		done := fastInt64(op, dst, a, b)
		foldIntegers(op, dst[done:], a[done:], b[done:])
	case []uint8:
		a, b := any(a).([]uint8), any(b).([]uint8)
		done := fastUint8(op, dst, a, b)
		foldIntegers(op, dst[done:], a[done:], b[done:])
	}
}

// SumInto is Into for sums of float32. For a few elements, it executes half as many
// instructions, because it has no type and no operation to choose.
func SumInto(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := fast32(Sum, dst, a, b); i < len(dst); i++ {
		x, y := a[i], b[i]
		r := x + y
		if r != r {
			r = nan32(x, y)
		}
		dst[i] = r
	}
}

// Scale sets x[i] = x[i] * by for every i. It does not allocate.
func Scale[T Number](x []T, by T) {
	switch x := any(x).(type) {
	case []float32:
		by := any(by).(float32)
		scaleFloats(x[fastScale32(x, by):], by, nan32)
	case []float64:
		by := any(by).(float64)
		scaleFloats(x[fastScale64(x, by):], by, nan64)
	case []int32:
		scaleIntegers(x, any(by).(int32))
	case []int64:
		scaleIntegers(x, any(by).(int64))
	case []uint8:
		scaleIntegers(x, any(by).(uint8))
	}
}
