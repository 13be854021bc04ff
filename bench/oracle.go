package bench

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/fold"
)

// period is the number of elements after which the inputs repeat. It has no factor in
// common with the sizes of blocks and pages, so a piece in another's place is wrong.
const period = 8191

// An oracle knows every rank's input, and so the correct results. All values are whole
// numbers that every type holds exactly. None is zero, which is what cleared memory
// has.
type oracle struct {
	seed        uint64
	ranks, root int
	count       int // elements of one rank's part
	dtype       collective.DType
	reduction   collective.Op
}

const (
	greatest = 8 // largest input
	// doublers is the number of ranks that may give a 2 to a product, which is then at
	// most 2^8. Floats hold powers of 2 exactly, and integers wrap.
	doublers = 8
)

// wholes is the number up to which a type holds all whole numbers, for types in which
// sums of inputs could exceed it.
var wholes = map[collective.DType]int{collective.Float16: 1 << 11, collective.BFloat16: 1 << 8}

// input returns element j of a rank's input: 1 to 8, or less if sums would not be
// exact. For products it is mostly 1 and -1, and sometimes 2.
func (o *oracle) input(rank, j int) int64 {
	x := mix(o.seed<<48 ^ uint64(rank)<<32 ^ uint64(j%period))
	if o.reduction == collective.Prod {
		if x%greatest == greatest-1 && rank < doublers {
			return 2
		}
		return 1 - 2*int64(x&1)
	}
	most := greatest
	if exact, limited := wholes[o.dtype]; limited && o.reduction != 0 {
		most = min(max(1, exact/o.ranks), greatest)
	}
	return int64(x%uint64(most)) + 1
}

// reduced returns element j of the reduction over all ranks, in 64 bits that wrap as
// shorter integers do. For a mean it is the sum; see convert.
func (o *oracle) reduced(j int) int64 {
	acc := o.input(0, j)
	for r := 1; r < o.ranks; r++ {
		x := o.input(r, j)
		switch o.reduction {
		case collective.Min:
			acc = min(acc, x)
		case collective.Max:
			acc = max(acc, x)
		case collective.Prod:
			acc *= x
		default:
			acc += x
		}
	}
	return acc
}

// convert turns a reduced number into the element that the library must compute. A
// mean is the sum times the rounded inverse of the number of ranks, or for integers
// the truncated quotient.
func convert[T collective.Element](o *oracle, x int64) T {
	switch {
	case o.reduction != collective.Mean:
		return T(x)
	case T(1)/2 == 0:
		return T(x / int64(o.ranks))
	}
	return T(x) * (1 / T(o.ranks))
}

// mix is the finalizer of splitmix64 (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// allocate makes a vector of n elements.
func allocate(t collective.DType, n int) (collective.Vector, error) {
	switch t {
	case collective.Float32:
		return collective.Of(make([]float32, n)), nil
	case collective.Float64:
		return collective.Of(make([]float64, n)), nil
	case collective.Int32:
		return collective.Of(make([]int32, n)), nil
	case collective.Int64:
		return collective.Of(make([]int64, n)), nil
	case collective.Uint8:
		return collective.Of(make([]uint8, n)), nil
	case collective.Float16, collective.BFloat16:
		return collective.Of16(make([]uint16, n), t), nil
	}
	return collective.Vector{}, fmt.Errorf("bench: vectors of %v: %w", t, collective.ErrUnsupported)
}

// fill sets element j of v to value(j), which repeats after period elements. For
// results of a reduction, o converts numbers to elements; for inputs it is nil.
func fill(v collective.Vector, o *oracle, value func(j int) int64) {
	switch v.DType() {
	case collective.Float32:
		fillAs[float32](v, o, value)
	case collective.Float64:
		fillAs[float64](v, o, value)
	case collective.Int32:
		fillAs[int32](v, o, value)
	case collective.Int64:
		fillAs[int64](v, o, value)
	case collective.Uint8:
		fillAs[uint8](v, o, value)
	case collective.Float16:
		fillHalves(v, o, value, fold.Half)
	case collective.BFloat16:
		fillHalves(v, o, value, fold.Brain)
	}
}

func fillAs[T collective.Element](v collective.Vector, o *oracle, value func(j int) int64) {
	s := elements[T](v)
	begin(s[:min(len(s), period)], o, value)
	repeat(s)
}

// fillHalves is fillAs for 16-bit floats, which are rounded from float32 after all
// arithmetic.
func fillHalves(v collective.Vector, o *oracle, value func(j int) int64, f fold.Format) {
	s := elements[uint16](v)
	exact := make([]float32, min(len(s), period))
	begin(exact, o, value)
	fold.Round(s[:len(exact)], exact, f)
	repeat(s)
}

// elements returns the memory of a vector that allocate made, as elements of its type.
func elements[T any](v collective.Vector) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(host(v)))), v.Len())
}

func begin[T collective.Element](s []T, o *oracle, value func(j int) int64) {
	for j := range s {
		if x := value(j); o != nil {
			s[j] = convert[T](o, x)
		} else {
			s[j] = T(x)
		}
	}
}

// repeat fills s with its first period elements.
func repeat[T any](s []T) {
	for done := period; done < len(s); done *= 2 {
		copy(s[done:], s[:done])
	}
}

// countWrong returns how many elements of width bytes differ.
func countWrong(got, want []byte, width int) int64 {
	if bytes.Equal(got, want) {
		return 0
	}
	wrong := int64(0)
	for i := 0; i < len(got); i += width {
		if !bytes.Equal(got[i:i+width], want[i:i+width]) {
			wrong++
		}
	}
	return wrong
}
