package collectivetest

import (
	"math"
	"math/big"
	"slices"
	"sync"
	"unsafe"

	"github.com/ringtrain/ringtrain/collective"
)

// blockLen is the block of ring order. It is deliberately repeated here, because the
// suites test the contract.
const blockLen = 4096

// Operands returns n values that differ by rank and index: fractions for
// floating-point types, so that the bits of a sum depend on its order, and the whole
// range for integers.
func Operands[T collective.Element](rank, n int) []T { return slices.Clone(operands[T](rank, n)) }

// operands is Operands for callers that do not change the result.
func operands[T collective.Element](rank, n int) []T {
	return first(sequence{collective.TypeOf[T](), rank}, n, func(i int) T { return operand[T](rank, i) })
}

// A sequence is what every test takes the first elements of.
type sequence struct {
	of   any
	rank int
}

// mostKept is how many bytes of a sequence are kept. Longer tests are few.
const mostKept = 9 << 20

var kept = struct {
	sync.Mutex
	of map[sequence]any
}{of: map[sequence]any{}}

// first returns the first n elements of a sequence, not to be changed. It computes each
// once: computing them for every rank of every test took a quarter of a suite's time, and more
// under the race detector.
func first[T any](s sequence, n int, element func(i int) T) []T {
	if n*int(unsafe.Sizeof(*new(T))) > mostKept {
		return grow(nil, n, element)
	}
	kept.Lock()
	defer kept.Unlock()
	all, _ := kept.of[s].([]T)
	if len(all) < n {
		all = grow(all, n, element)
		kept.of[s] = all
	}
	return all[:n:n]
}

func grow[T any](s []T, n int, element func(i int) T) []T {
	s = slices.Grow(s, n-len(s))
	for i := len(s); i < n; i++ {
		s = append(s, element(i))
	}
	return s
}

// operand returns element i of Operands.
func operand[T collective.Element](rank, i int) (v T) {
	x := mix(uint64(rank)<<40 | uint64(i))
	switch p := any(&v).(type) {
	case *float32:
		*p = float32(int64(x)) / math.MaxInt64
	case *float64:
		*p = float64(int64(x)) / math.MaxInt64
	case *int32:
		*p = int32(x)
	case *int64:
		*p = int64(x)
	case *uint8:
		*p = uint8(x)
	}
	return v
}

// mix is the finalizer of splitmix64 (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Reduced returns the bits that AllReduce must produce on every rank, for the
// Operands of size ranks at offset in their arena. Do not change them.
func Reduced[T collective.Element](size, n, offset int, op collective.Op) []T {
	all := make([][]T, size)
	for r := range all {
		all[r] = operands[T](r, n)
	}
	return firstReduced(reduced{collective.TypeOf[T](), op, offset}, size, n, reduction(all, offset, op))
}

// reduced is the key of a sequence: the results for a number of ranks.
type reduced struct {
	of     any // the operands
	op     collective.Op
	offset int
}

// firstReduced is first for the results of a reduction. Those at an offset are not kept: most
// offsets are used once.
func firstReduced[T any](key reduced, size, n int, element func(i int) T) []T {
	if key.offset != 0 {
		return grow(nil, n, element)
	}
	return first(sequence{key, size}, n, element)
}

// reduction returns a function that reduces element i of all operands, which are given by rank.
func reduction[T collective.Element](all [][]T, offset int, op collective.Op) func(i int) T {
	size := len(all)
	if op == collective.Mean && !floating[T]() {
		return func(i int) T {
			sum := new(big.Int)
			for r := range all {
				sum.Add(sum, big.NewInt(int64(all[r][i])))
			}
			return T(sum.Quo(sum, big.NewInt(int64(size))).Int64())
		}
	}
	return func(i int) T {
		first := (offset + i) / blockLen % size
		acc := all[first][i]
		for k := 1; k < size; k++ {
			acc = combine(op, acc, all[(first+k)%size][i])
		}
		if op == collective.Mean {
			acc *= T(1) / T(size)
		}
		return acc
	}
}

func floating[T collective.Element]() bool {
	t := collective.TypeOf[T]()
	return t == collective.Float32 || t == collective.Float64
}

func combine[T collective.Element](op collective.Op, a, b T) T {
	switch op {
	case collective.Min:
		return min(a, b)
	case collective.Max:
		return max(a, b)
	case collective.Prod:
		return a * b
	default:
		return a + b
	}
}
