// Package fold is the arithmetic of reductions.
//
// The loops here are the definition of every result: round to nearest even, no
// fused multiply-add, integers wrap, Min and Max are IEEE 754-2019 minimum and
// maximum (a NaN operand gives NaN, -0 is less than +0).
package fold

// Op combines two operands into one.
type Op uint8

// The operations.
const (
	Sum Op = iota
	Min
	Max
	Prod
)

// Number is the set of types that can be folded.
type Number interface {
	float32 | float64 | int32 | int64 | uint8
}

// Into sets dst[i] = a[i] op b[i] for every i < len(dst). a is what has been
// folded so far and b the next operand; either may be dst itself. The three
// have the same length.
func Into[T Number](op Op, dst, a, b []T) {
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

// Scale sets x[i] = x[i] * by for every i.
func Scale[T Number](x []T, by T) {
	for i := range x {
		x[i] *= by
	}
}
