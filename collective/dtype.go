package collective

import (
	"fmt"
	"math"

	"github.com/ringtrain/ringtrain/collective/fold"
)

// DType is the type of a Vector's elements. The numbers are part of the wire
// format.
type DType uint8

// The element types. Reductions of 16-bit floats are folded in float32 and
// rounded once, at the end.
const (
	Float32 DType = iota + 1
	Float64
	Float16
	BFloat16
	Int32
	Int64
	Uint8
)

var dtypes = [...]struct {
	name string
	size int
}{
	Float32: {"float32", 4}, Float64: {"float64", 8}, Float16: {"float16", 2}, BFloat16: {"bfloat16", 2},
	Int32: {"int32", 4}, Int64: {"int64", 8}, Uint8: {"uint8", 1},
}

// Size returns the size of one element in bytes, or 0 for an unknown type.
func (t DType) Size() int {
	if int(t) < len(dtypes) {
		return dtypes[t].size
	}
	return 0
}

// String returns the name of the type as nccl-tests and Go spell it.
func (t DType) String() string {
	if t.Size() > 0 {
		return dtypes[t].name
	}
	return fmt.Sprintf("dtype(%d)", uint8(t))
}

// Element lists the Go types that a Vector in host memory can have as elements.
type Element interface {
	float32 | float64 | int32 | int64 | uint8
}

// TypeOf returns the DType of a Go type.
func TypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int32:
		return Int32
	case int64:
		return Int64
	default:
		return Uint8
	}
}

// Op is a reduction. The numbers are part of the wire format.
type Op uint8

// The reductions. Min and Max are IEEE 754-2019 minimum and maximum: NaN wins,
// and -0 < +0. Integers wrap. Mean of floats is Sum multiplied by 1/size at the
// end. Mean of integers is their exact sum divided by size, truncated.
const (
	Sum Op = iota + 1
	Mean
	Min
	Max
	Prod
)

// String returns the name of the reduction in lower case.
func (o Op) String() string {
	switch o {
	case Sum:
		return "sum"
	case Mean:
		return "mean"
	case Min:
		return "min"
	case Max:
		return "max"
	case Prod:
		return "prod"
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// step returns the reduction that combines two operands of o. For Mean that is
// Sum, because the division is done once at the end.
func (o Op) step() fold.Op {
	switch o {
	case Min:
		return fold.Min
	case Max:
		return fold.Max
	case Prod:
		return fold.Prod
	default:
		return fold.Sum
	}
}

// reducible returns an error if the reduction is unknown or the vector's offset
// in its arena is out of range. It is short enough to be inlined.
func reducible(v *Vector, o Op) error {
	if o >= Sum && o <= Prod && uint64(v.arena) <= math.MaxUint32 { // Call.Offset has 32 bits
		return nil
	}
	return irreducible(v, o)
}

func irreducible(v *Vector, o Op) error {
	if o < Sum || o > Prod {
		return fmt.Errorf("collective: unknown reduction %v", o)
	}
	return fmt.Errorf("collective: %v of %v: its offset in the arena must be 0 to %d", o, *v, uint32(math.MaxUint32))
}
