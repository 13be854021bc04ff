package fold

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

const (
	maxLength = 257
	offsets   = 64 // elements; covers every offset in a cache line
	guard     = 8  // elements on each side of dst that must not change
)

var (
	ops     = []Op{Sum, Min, Max, Prod}
	opNames = [...]string{Sum: "sum", Min: "min", Max: "max", Prod: "prod"}
)

// special32 lists the bits of values with unusual arithmetic.
var special32 = []uint32{
	0, 1, 2, 0x007fffff, 0x00800000, 0x00800001, 0x33800000, 0x3f800000, 0x3f800001, 0x40400000, 0x7f7fffff,
	0x7f800000, 0x7f800001, 0x7fa00000, 0x7fbfffff, 0x7fc00000, 0x7fc12345, 0x7fffffff,
}

var special64 = []uint64{
	0, 1, 2, 0x000fffffffffffff, 0x0010000000000000, 0x0010000000000001, 0x3ca0000000000000, 0x3ff0000000000000,
	0x3ff0000000000001, 0x4008000000000000, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7ff0000000000001,
	0x7ff4000000000000, 0x7ff7ffffffffffff, 0x7ff8000000000000, 0x7ff8123456789abc, 0x7fffffffffffffff,
}

// pool32 returns n numbers of both signs; every third is special.
func pool32(n int, r *rand.Rand) []float32 {
	p := make([]float32, n)
	for i := range p {
		bits := r.Uint32()
		switch r.IntN(3) {
		case 0:
			bits = special32[r.IntN(len(special32))] | r.Uint32()&(1<<31)
		case 1:
			bits = math.Float32bits(float32(r.NormFloat64()))
		}
		p[i] = math.Float32frombits(bits)
	}
	return p
}

func pool64(n int, r *rand.Rand) []float64 {
	p := make([]float64, n)
	for i := range p {
		bits := r.Uint64()
		switch r.IntN(3) {
		case 0:
			bits = special64[r.IntN(len(special64))] | r.Uint64()&(1<<63)
		case 1:
			bits = math.Float64bits(r.NormFloat64())
		}
		p[i] = math.Float64frombits(bits)
	}
	return p
}

// memory returns the bytes of s, to compare every bit.
func memory[T any](s []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}

func needKernels(t *testing.T) {
	t.Helper()
	if fastScale32(make([]float32, 64), 1) == 0 {
		t.Skip("this build or processor has no kernels to compare with the loops")
	}
}

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func TestKernelsEqualLoops(t *testing.T) {
	needKernels(t)
	t.Run("float32", func(t *testing.T) {
		kernelsEqualLoops(t, pool32, loop32, func(x []float32, by float32) { scaleFloats(x, by, nan32) })
	})
	t.Run("float64", func(t *testing.T) {
		kernelsEqualLoops(t, pool64, loop64, func(x []float64, by float64) { scaleFloats(x, by, nan64) })
	})
	t.Run("int32", func(t *testing.T) { kernelsEqualLoops(t, poolIntegers[int32], foldIntegers, scaleIntegers) })
	t.Run("int64", func(t *testing.T) { kernelsEqualLoops(t, poolIntegers[int64], foldIntegers, scaleIntegers) })
	t.Run("uint8", func(t *testing.T) { kernelsEqualLoops(t, poolIntegers[uint8], foldIntegers, scaleIntegers) })
}

func loop32(op Op, dst, a, b []float32) { foldFloats(op, dst, a, b, nan32) }

func loop64(op Op, dst, a, b []float64) { foldFloats(op, dst, a, b, nan64) }

// kernelsEqualLoops compares Into with loop and Scale with scale, at every length and at
// every offset in a cache line.
func kernelsEqualLoops[T Number](
	t *testing.T, pool func(int, *rand.Rand) []T, loop func(op Op, dst, a, b []T), scale func(x []T, by T),
) {
	const room = maxLength + offsets + 2*guard
	operands, blank := pool(2*room, seeded()), pool(room, seeded())
	a, b, dst := make([]T, room), make([]T, room), make([]T, room)
	want := make([]T, room)
	for n := range maxLength + 1 {
		for offset := range offsets {
			// Three walks through all offsets, not in step with each other.
			at, atA, atB := guard+offset, (7*offset+n)%offsets, (13*offset+3*n)%offsets
			for _, op := range ops {
				x, y := operands[atA:][:n], operands[room+atB:][:n]
				copy(want, blank)
				loop(op, want[at:][:n], x, y)

				copy(dst, blank)
				copy(a[atA:], x)
				copy(b[atB:], y)
				Into(op, dst[at:][:n], a[atA:][:n], b[atB:][:n])
				same(t, want, dst, "op %d of %d at %d, %d, %d", op, n, at, atA, atB)
				same(t, x, a[atA:][:n], "a changed")
				same(t, y, b[atB:][:n], "b changed")

				copy(dst, blank)
				copy(dst[at:], x)
				Into(op, dst[at:][:n], dst[at:][:n], b[atB:][:n])
				same(t, want, dst, "op %d of %d at %d, %d: dst is a", op, n, at, atB)

				copy(dst, blank)
				copy(dst[at:], y)
				Into(op, dst[at:][:n], a[atA:][:n], dst[at:][:n])
				same(t, want, dst, "op %d of %d at %d, %d: dst is b", op, n, at, atA)
			}
			x, by := operands[atA:][:n], operands[room+atB]
			copy(want, blank)
			copy(want[at:], x)
			copy(dst, want)
			scale(want[at:][:n], by)
			Scale(dst[at:][:n], by)
			same(t, want, dst, "scale of %d at %d by %v", n, at, by)
		}
	}
}

// same is a fast require.Equal on bits.
func same[T any](t *testing.T, want, got []T, format string, args ...any) {
	t.Helper()
	if bytes.Equal(memory(want), memory(got)) {
		return
	}
	for i := range want {
		w, g := memory(want[i:i+1]), memory(got[i:i+1])
		require.Equal(t, w, g, "bytes of element %d: %s", i, fmt.Sprintf(format, args...))
	}
}

// Long slices take several kernel calls.
func TestKernelsOfLongSlices(t *testing.T) {
	needKernels(t)
	const piece = 1 << 15
	for _, n := range []int{piece - 1, piece, piece + 17, 2*piece + 5} {
		a, b := pool32(n, seeded()), pool32(n+1, seeded())[1:]
		for _, op := range ops {
			want, got := make([]float32, n), make([]float32, n)
			foldFloats(op, want, a, b, nan32)
			Into(op, got, a, b)
			same(t, want, got, "op %d of %d", op, n)
		}
		want, got := append([]float32(nil), a...), append([]float32(nil), a...)
		scaleFloats(want, 1./3, nan32)
		Scale(got, 1./3)
		same(t, want, got, "scale of %d", n)
		for _, f := range []Format{Half, Brain} {
			want, got := make([]uint16, n), make([]uint16, n)
			roundEach(want, a, f)
			Round(got, a, f)
			same(t, want, got, "round %d of %d", f, n)
			wide, wider := make([]float32, n), make([]float32, n)
			widenEach(wide, want, f)
			Widen(wider, want, f)
			same(t, wide, wider, "widen %d of %d", f, n)
		}
	}
}

// Loops and kernels agree on each pair of special values with an independent definition.
func TestSpecialPairs(t *testing.T) {
	var a, b []float32
	for _, x := range special32 {
		for _, y := range special32 {
			for sign := range uint32(4) {
				a = append(a, math.Float32frombits(x|sign<<31))
				b = append(b, math.Float32frombits(y|sign>>1<<31))
			}
		}
	}
	for _, op := range ops {
		loops, got := make([]float32, len(a)), make([]float32, len(a))
		foldFloats(op, loops, a, b, nan32)
		Into(op, got, a, b)
		for i := range a {
			want := define32(op, math.Float32bits(a[i]), math.Float32bits(b[i]))
			where := fmt.Sprintf("%x op %d %x", math.Float32bits(a[i]), op, math.Float32bits(b[i]))
			require.Equal(t, want, math.Float32bits(loops[i]), where)
			require.Equal(t, want, math.Float32bits(got[i]), where)
		}
	}
}

// define32 computes in float64, which is wide enough that only the final rounding counts,
// and orders by the bits.
func define32(op Op, x, y uint32) uint32 {
	const infinity, quiet = 0x7f800000, 0x00400000
	for _, v := range []uint32{x, y} {
		if v&0x7fffffff > infinity {
			return v | quiet
		}
	}
	order := func(v uint32) int64 { // -0 becomes -1, below 0
		if v>>31 == 1 {
			return -1 - int64(v&0x7fffffff)
		}
		return int64(v)
	}
	wideX, wideY := float64(math.Float32frombits(x)), float64(math.Float32frombits(y))
	var wide float64
	switch op {
	case Min, Max:
		if (order(x) < order(y)) == (op == Min) {
			return x
		}
		return y
	case Sum:
		wide = wideX + wideY
	case Prod:
		wide = wideX * wideY
	}
	if math.IsNaN(wide) {
		return 0xffc00000
	}
	return math.Float32bits(float32(wide))
}

func TestNaNOfFloat64(t *testing.T) {
	const first, second, signalling = 0x7ff8000000000111, 0xfff8000000000222, 0x7ff4000000000333
	for _, c := range []struct{ a, b, want uint64 }{
		{first, second, first}, {second, first, second},
		{signalling, first, signalling | 1<<51}, {first, signalling, first},
		{math.Float64bits(1), signalling, signalling | 1<<51},
		{second, math.Float64bits(math.Inf(1)), second},
	} {
		for _, op := range ops {
			for _, n := range []int{1, 16} { // by the loop, by the kernel
				a, b := repeat(c.a, n), repeat(c.b, n)
				Into(op, a, a, b)
				require.Equal(t, c.want, math.Float64bits(a[n-1]), "%x op %d %x, %d times", c.a, op, c.b, n)
			}
		}
	}
	for _, n := range []int{1, 16} {
		x := repeat(0, n)
		Scale(x, math.Inf(-1))
		require.Equal(t, uint64(0xfff8000000000000), math.Float64bits(x[0]), "0 * -Inf, %d times", n)
	}
}

func repeat(bits uint64, n int) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = math.Float64frombits(bits)
	}
	return s
}

func TestNothingIsAllocated(t *testing.T) {
	wide, narrow, small := make([]float32, 100), make([]uint16, 100), make([]uint8, 100)
	singles, bytes := [][]float32{wide, wide, wide}, [][]uint8{small, small}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		Into(Max, wide, wide, wide)
		Into(Prod, small, small, small)
		Scale(wide, .25)
		Scale(small, 3)
		SumAll(wide, singles, .5)
		MeanAll(small, bytes)
		Round(narrow, wide, Half)
		Widen(wide, narrow, Brain)
	}))
}
