package fold

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// specialIntegers are values near the limits of the types and of their halves. Each type
// takes the lower bits.
var specialIntegers = []int64{
	0, 1, 2, -1, -2, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x10000, math.MaxInt32, math.MinInt32, math.MaxUint32, 1 << 32, -1 << 32,
	1<<32 + 1, 0x7fffffff00000000, -0x7fffffff00000001, math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 0x7fffffff80000000,
}

// poolIntegers returns n integers: a third special, a third near zero.
func poolIntegers[T integer](n int, r *rand.Rand) []T {
	p := make([]T, n)
	for i := range p {
		p[i] = T(r.Uint64())
		switch r.IntN(3) {
		case 0:
			p[i] = T(specialIntegers[r.IntN(len(specialIntegers))])
		case 1:
			p[i] = T(r.IntN(33) - 16)
		}
	}
	return p
}

func TestIntegerLimits(t *testing.T) {
	for n := range maxLength {
		a, b := make([]int32, n), make([]int32, n)
		for i := range a {
			a[i], b[i] = math.MinInt32, -1
		}
		Into(Sum, a, a, b)
		for i := range a {
			require.Equal(t, int32(math.MaxInt32), a[i])
		}
	}
	for _, c := range []struct {
		op   Op
		want int64
	}{{Sum, -1}, {Min, math.MinInt64}, {Max, math.MaxInt64}, {Prod, math.MinInt64}} {
		a := []int64{math.MinInt64}
		Into(c.op, a, a, []int64{math.MaxInt64})
		require.Equal(t, c.want, a[0], "op %d", c.op)
	}
	x := []int64{math.MinInt64, math.MaxInt64}
	Scale(x, -1)
	require.Equal(t, []int64{math.MinInt64, -math.MaxInt64}, x)
}

// Loops and kernels agree with int arithmetic on all pairs of bytes.
func TestAllPairsOfBytes(t *testing.T) {
	a, b := make([]uint8, 1<<16), make([]uint8, 1<<16)
	for i := range a {
		a[i], b[i] = uint8(i), uint8(i>>8)
	}
	for _, op := range ops {
		loops, got := make([]uint8, len(a)), make([]uint8, len(a))
		foldIntegers(op, loops, a, b)
		Into(op, got, a, b)
		for i := range a {
			x, y := int(a[i]), int(b[i])
			want := uint8([...]int{Sum: x + y, Min: min(x, y), Max: max(x, y), Prod: x * y}[op] % 256)
			if want != loops[i] || want != got[i] {
				require.Failf(t, "wrong", "%d %s %d: want %d, got %d from the loop and %d from Into", x, opNames[op], y, want, loops[i], got[i])
			}
		}
	}
}

func TestSpecialPairsOfIntegers(t *testing.T) {
	t.Run("int32", specialPairsOfIntegers[int32])
	t.Run("int64", specialPairsOfIntegers[int64])
}

// specialPairsOfIntegers compares loops and kernels with big integers,
// truncated to the type.
func specialPairsOfIntegers[T int32 | int64](t *testing.T) {
	var a, b []T
	r := seeded()
	for _, x := range append(specialIntegers, r.Int64(), -r.Int64()) {
		for _, y := range append(specialIntegers, r.Int64(), -r.Int64()) {
			a, b = append(a, T(x)), append(b, T(y))
		}
	}
	for _, op := range ops {
		loops, got := make([]T, len(a)), make([]T, len(a))
		foldIntegers(op, loops, a, b)
		Into(op, got, a, b)
		for i := range a {
			x, y := big.NewInt(int64(a[i])), big.NewInt(int64(b[i]))
			want := new(big.Int)
			switch {
			case op == Sum:
				want.Add(x, y)
			case op == Prod:
				want.Mul(x, y)
			case (x.Cmp(y) < 0) == (op == Min):
				want = x
			default:
				want = y
			}
			require.Equal(t, wrapped[T](want), loops[i], "%d %s %d, loop", a[i], opNames[op], b[i])
			require.Equal(t, wrapped[T](want), got[i], "%d %s %d", a[i], opNames[op], b[i])
		}
	}
}

// wrapped returns the number with the lower bits of x.
func wrapped[T int32 | int64](x *big.Int) T {
	modulus := new(big.Int).Lsh(big.NewInt(1), 64)
	return T(new(big.Int).Mod(x, modulus).Uint64())
}

func TestIntegerKernelsOfLongSlices(t *testing.T) {
	needKernels(t)
	t.Run("int32", longSlicesOfIntegers[int32])
	t.Run("int64", longSlicesOfIntegers[int64])
	t.Run("uint8", longSlicesOfIntegers[uint8])
}

func longSlicesOfIntegers[T integer](t *testing.T) {
	const piece = 1 << 15
	for _, n := range []int{piece - 1, piece, piece + 33, 2*piece + 5} {
		a, b := poolIntegers[T](n, seeded()), poolIntegers[T](n+1, seeded())[1:]
		for _, op := range ops {
			want, got := make([]T, n), make([]T, n)
			foldIntegers(op, want, a, b)
			Into(op, got, a, b)
			same(t, want, got, "%s of %d", opNames[op], n)
		}
	}
}

// FuzzInto reads the input as operands of each type: the first half is a, the
// second b.
func FuzzInto(f *testing.F) {
	seed := make([]byte, 0, 1<<11)
	for _, x := range specialIntegers {
		seed = binary.LittleEndian.AppendUint64(seed, uint64(x))
	}
	for i, x := range special64 {
		seed = binary.LittleEndian.AppendUint64(seed, x|uint64(i%2)<<63)
		seed = binary.LittleEndian.AppendUint32(seed, special32[i]|uint32(i%2)<<31)
	}
	f.Add(seed, uint8(0))
	f.Add(slices.Concat(seed[64:], seed), uint8(3))
	f.Add(make([]byte, 555), uint8(1))
	f.Fuzz(func(t *testing.T, input []byte, skip uint8) {
		// Try every offset in a cache line that the types' alignment permits.
		room := make([]uint64, len(input)/8+9)
		text := memory(room)[8*(skip%8):][:len(input)]
		copy(text, input)
		fuzzInto(t, text, loop32)
		fuzzInto(t, text, loop64)
		fuzzInto(t, text, foldIntegers[int32])
		fuzzInto(t, text, foldIntegers[int64])
		fuzzInto(t, text, foldIntegers[uint8])
	})
}

func fuzzInto[T Number](t *testing.T, text []byte, loop func(op Op, dst, a, b []T)) {
	n := len(text) / len(memory(make([]T, 2)))
	if n == 0 {
		return
	}
	all := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(text))), 2*n)
	want, got := make([]T, n), make([]T, n)
	for _, op := range ops {
		loop(op, want, all[:n], all[n:])
		Into(op, got, all[:n], all[n:])
		same(t, want, got, "%T %s of %d", want, opNames[op], n)
	}
}
