package fold

import "math"

type integer interface{ int32 | int64 | uint8 }

type float interface{ float32 | float64 }

// foldIntegers is Into for integers.
func foldIntegers[T integer](op Op, dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	switch op {
	case Sum:
		for i := range dst {
			dst[i] = a[i] + b[i]
		}
	case Min:
		for i := range dst {
			dst[i] = min(a[i], b[i])
		}
	case Max:
		for i := range dst {
			dst[i] = max(a[i], b[i])
		}
	case Prod:
		for i := range dst {
			dst[i] = a[i] * b[i]
		}
	}
}

// foldFloats is Into for floats. Go does not specify which NaN an operation returns, and
// processors differ, so nan (nan32 or nan64) chooses it.
func foldFloats[T float](op Op, dst, a, b []T, nan func(x, y T) T) {
	a, b = a[:len(dst)], b[:len(dst)]
	switch op {
	case Sum:
		for i, x := range a {
			y := b[i]
			r := x + y
			if r != r {
				r = nan(x, y)
			}
			dst[i] = r
		}
	case Min:
		for i, x := range a {
			y := b[i]
			r := min(x, y)
			if r != r {
				r = nan(x, y)
			}
			dst[i] = r
		}
	case Max:
		for i, x := range a {
			y := b[i]
			r := max(x, y)
			if r != r {
				r = nan(x, y)
			}
			dst[i] = r
		}
	case Prod:
		for i, x := range a {
			y := b[i]
			r := x * y
			if r != r {
				r = nan(x, y)
			}
			dst[i] = r
		}
	}
}

// scaleIntegers is Scale for integers.
func scaleIntegers[T integer](x []T, by T) {
	for i := range x {
		x[i] *= by
	}
}

// scaleFloats is Scale for floats.
func scaleFloats[T float](x []T, by T, nan func(x, y T) T) {
	for i, v := range x {
		r := v * by
		if r != r {
			r = nan(v, by)
		}
		x[i] = r
	}
}

// The bit that makes a NaN quiet, and the NaN computed from operands that are not NaN.
const (
	quiet32      = 1 << 22
	quiet64      = 1 << 51
	defaultNaN32 = 0xffc00000
	defaultNaN64 = 0xfff8000000000000
)

// nan32 returns the NaN that an operation on x and y gives. It follows x86, so that the
// kernels need no extra work.
func nan32(x, y float32) float32 {
	switch {
	case x != x:
		return math.Float32frombits(math.Float32bits(x) | quiet32)
	case y != y:
		return math.Float32frombits(math.Float32bits(y) | quiet32)
	}
	return math.Float32frombits(defaultNaN32)
}

// nan64 is nan32 for float64.
func nan64(x, y float64) float64 {
	switch {
	case x != x:
		return math.Float64frombits(math.Float64bits(x) | quiet64)
	case y != y:
		return math.Float64frombits(math.Float64bits(y) | quiet64)
	}
	return math.Float64frombits(defaultNaN64)
}
