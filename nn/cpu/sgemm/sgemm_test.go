package sgemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// reference is the order of operations of the package, element by element.
func reference(c, a, b Matrix, s Shape, beta float32) {
	rowA, columnA := a.strides()
	rowB, columnB := b.strides()
	for i := range s.M {
		for j := range s.N {
			at := i*c.Stride + j
			add := beta != 0
			switch beta {
			case 0, 1:
			default:
				c.Data[at] *= beta
			}
			if s.K == 0 && !add {
				c.Data[at] = 0
			}
			for from := 0; from < s.K; from += Block {
				var sum float32
				for k := from; k < min(from+Block, s.K); k++ {
					sum = fma(a.Data[i*rowA+k*columnA], b.Data[k*rowB+j*columnB], sum)
				}
				if add {
					c.Data[at] += sum
				} else {
					c.Data[at] = sum
				}
				add = true
			}
		}
	}
}

// everyMultiplier calls f with a Multiplier for each kind of kernels and one for plain Go.
func everyMultiplier(t *testing.T, f func(t *testing.T, x *Multiplier)) {
	for _, k := range append(available(), nil) {
		x := &Multiplier{kernels: k}
		t.Run(fmt.Sprintf("%q", x.Instructions()), func(t *testing.T) { f(t, x) })
	}
}

// A maker makes random matrices in memory with a guard on both sides.
type maker struct {
	*rand.Rand
	shift, gap int // offset of the first element, and elements between rows
	values     func() float32
}

const guard = 24

// matrix returns a matrix of rows by columns. Everything around its elements is guardValue.
func (m maker) matrix(rows, columns int, transposed bool) (Matrix, []float32) {
	if transposed {
		rows, columns = columns, rows
	}
	stride := columns + m.gap
	all := make([]float32, 2*guard+m.shift+rows*stride)
	for i := range all {
		all[i] = guardValue
	}
	var n int
	if rows > 0 {
		n = (rows-1)*stride + columns
	}
	data := all[guard+m.shift:][:n:n]
	for r := range rows {
		for c := range columns {
			data[r*stride+c] = m.values()
		}
	}
	return Matrix{Data: data, Stride: stride, Transposed: transposed}, all
}

const guardValue = 12345

// bits returns the bits of v, with one value for every NaN.
func bits(v []float32) []uint32 {
	u := make([]uint32, len(v))
	for i, f := range v {
		u[i] = math.Float32bits(f)
		if f != f {
			u[i] = 0x7fc00000
		}
	}
	return u
}

// compare multiplies and requires the bits of the reference in C, and nothing changed around it.
func compare(t *testing.T, x *Multiplier, m maker, s Shape, transA, transB bool, beta float32) {
	t.Helper()
	a, _ := m.matrix(s.M, s.K, transA)
	b, _ := m.matrix(s.K, s.N, transB)
	c, all := m.matrix(s.M, s.N, false)
	if beta == 0 && s.N > 0 { // old contents do not matter
		for i := range s.M {
			c.Data[i*c.Stride] = float32(math.NaN())
		}
	}
	before := append([]float32(nil), all...)
	x.Multiply(c, a, b, s, beta)
	got := append([]float32(nil), all...)
	copy(all, before)
	reference(c, a, b, s, beta)
	if want := bits(all); !equalBits(want, bits(got)) {
		for i := range want {
			if bits(got)[i] != want[i] {
				at := i - guard - m.shift
				t.Fatalf("%v transA %v transB %v beta %v shift %d gap %d: element (%d, %d) is %v, want %v", s, transA, transB, beta, m.shift, m.gap, at/max(1, c.Stride), at%max(1, c.Stride), got[i], all[i])
			}
		}
	}
}

func equalBits(a, b []uint32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestEveryShapeHasTheBitsOfTheReference(t *testing.T) {
	everyMultiplier(t, func(t *testing.T, x *Multiplier) {
		r := rand.New(rand.NewPCG(1, 2))
		m := maker{Rand: r, values: func() float32 { return float32(r.NormFloat64()) }}
		try := func(s Shape) {
			for mode := range 8 {
				m.shift, m.gap = r.IntN(16), []int{0, 0, 1, 5, 16}[r.IntN(5)]
				beta := []float32{0, 1, 0, 1, .5}[r.IntN(5)]
				compare(t, x, m, s, mode&1 != 0, mode&2 != 0, beta)
			}
		}
		sizes := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 27, 28, 29, 31, 32, 33, 47, 63, 64, 65}
		for _, rows := range sizes {
			for _, columns := range sizes {
				try(Shape{rows, columns, []int{1, 2, 3, 4, 5, 9, 10}[r.IntN(7)]})
			}
		}
		for _, k := range []int{0, 1, 2, 3, 4, 5, 7, 8, 31, Block - 1, Block, Block + 1, 2*Block + 3} {
			for _, rows := range []int{1, 3, 13, 30} {
				for _, columns := range []int{1, 10, 33, 150} {
					try(Shape{rows, columns, k})
				}
			}
		}
	})
}

// Shapes beyond the limits of one packed block, and beyond those below which nothing is packed.
func TestLargeShapesHaveTheBitsOfTheReference(t *testing.T) {
	everyMultiplier(t, func(t *testing.T, x *Multiplier) {
		r := rand.New(rand.NewPCG(13, 14))
		for _, s := range []Shape{{30, fewColumns + 9, shortInner + 7}, {rowsPerBlock + 30, fewColumns + 40, shortInner + 2}, {fewRows + 5, 70, shortInner + 1}, {farApart + 11, shortInner + 3, 37}, {5, columnsPerBlock + 50, 9}, {2, columnsPerBlock + 200, Block + 1}, {1, 3, 3*Block + 1}, {3, 50, Block + 3}, {1, 33, farRows}, {33, 10, farRows}, {32, 50, farRows / 2}} {
			for mode := range 4 {
				m := maker{Rand: r, shift: r.IntN(16), gap: r.IntN(3), values: func() float32 { return float32(r.NormFloat64()) }}
				compare(t, x, m, s, mode&1 != 0, mode&2 != 0, float32(mode&1))
			}
		}
	})
}

// With a short inner dimension and enough columns, AVX-512 uses tiles of 4 registers per row.
func TestShortInnerDimensionsHaveWideTiles(t *testing.T) {
	for _, k := range available() {
		for _, c := range []struct {
			shape      Shape
			transposed bool // B
			short      bool
		}{
			{Shape{128, 4 * k.lanes, shortInner}, false, true},
			{Shape{128, 4 * k.lanes, shortInner + 1}, false, false},
			{Shape{128, 4*k.lanes - 1, shortInner}, false, false},
			{Shape{128, 4 * k.lanes, shortInner}, true, false},
		} {
			want := 2
			if c.short && k.wideShort {
				want = 4
			}
			x := blocked{kernels: k, product: product{b: Matrix{Transposed: c.transposed}, Shape: c.shape}}
			x.plan()
			require.Equal(t, want, x.wide, "%s: %+v", k.name, c)
		}
	}
}

// Numbers of rows for which each packed kernel is used, with whole and partial iterations.
func TestPackedShapesHaveTheBitsOfTheReference(t *testing.T) {
	everyMultiplier(t, func(t *testing.T, x *Multiplier) {
		r := rand.New(rand.NewPCG(19, 20))
		for _, rows := range []int{11, 13, 14, 15, 17, 19, 21, 24, 26, 28} {
			for _, k := range []int{1, 3, 4, 6, Block + 9} {
				for beta := range 2 {
					m := maker{Rand: r, shift: r.IntN(16), gap: r.IntN(3), values: func() float32 { return float32(r.NormFloat64()) }}
					compare(t, x, m, Shape{rows, fewColumns + 12, k}, false, true, float32(beta))
				}
			}
		}
	})
}

// Numbers of rows and columns for which each dots kernel is used.
func TestFewRowsHaveTheBitsOfTheReference(t *testing.T) {
	everyMultiplier(t, func(t *testing.T, x *Multiplier) {
		r := rand.New(rand.NewPCG(15, 16))
		for rows := 1; rows <= 12; rows++ {
			for _, k := range []int{3, 64, Block, 2*Block + 7} {
				for beta := range 2 {
					m := maker{Rand: r, shift: r.IntN(16), gap: r.IntN(3), values: func() float32 { return float32(r.NormFloat64()) }}
					compare(t, x, m, Shape{rows, 2*2*dotColumns + dotColumns + 3, k}, false, true, float32(beta))
				}
			}
		}
	})
}

// Numbers of columns and rows for which narrow kernels are used, in one part and in more.
func TestFewColumnsHaveTheBitsOfTheReference(t *testing.T) {
	everyMultiplier(t, func(t *testing.T, x *Multiplier) {
		r := rand.New(rand.NewPCG(17, 18))
		for _, columns := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 17, 24, 36, 50} {
			for _, rows := range []int{8, 15, 16, 17, 31, 32, 37} {
				for _, k := range []int{narrowInner, narrowInner + 1, narrowInner + 2, narrowInner + 3, Block, 2*Block + 7} {
					m := maker{Rand: r, shift: r.IntN(16), gap: r.IntN(3), values: func() float32 { return float32(r.NormFloat64()) }}
					compare(t, x, m, Shape{rows, columns, k}, false, true, []float32{0, 1, .5}[r.IntN(3)])
				}
			}
		}
	})
}

// Products whose operands and sums are close to the ends of the range of float32, and values
// that make rounding hard.
func TestUnusualValuesHaveTheBitsOfTheReference(t *testing.T) {
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1 + 0x1p-23, 1 - 0x1p-24, 0x1p-75, -0x1p-74, 0x1p-126, 0x1p-149, 0x1.8p-140,
		math.MaxFloat32, -math.MaxFloat32, 0x1p64, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	everyMultiplier(t, func(t *testing.T, x *Multiplier) {
		r := rand.New(rand.NewPCG(9, 10))
		for _, kinds := range []int{2, 6, 11, len(special) - 3, len(special)} {
			m := maker{Rand: r, values: func() float32 { return special[r.IntN(kinds)] }}
			for mode := range 4 {
				for _, k := range []int{1, 2, 3, 9, Block + 2} {
					compare(t, x, m, Shape{15, 37, k}, mode&1 != 0, mode&2 != 0, float32(r.IntN(2)))
				}
			}
		}
	})
}

// A zero times NaN or infinity is NaN: no zero is skipped.
func TestZerosDoNotHideNaN(t *testing.T) {
	everyMultiplier(t, func(t *testing.T, x *Multiplier) {
		for _, v := range []float64{math.NaN(), math.Inf(1)} {
			s := Shape{20, 40, 300}
			a := Matrix{Data: make([]float32, s.M*s.K), Stride: s.K}
			b := Matrix{Data: make([]float32, s.K*s.N), Stride: s.N}
			c := Matrix{Data: make([]float32, s.M*s.N), Stride: s.N}
			b.Data[299*s.N+39] = float32(v)
			x.Multiply(c, a, b, s, 0)
			for i, got := range c.Data {
				require.Equal(t, i%s.N == 39, got != got, "element %d", i)
			}
		}
	})
}

func TestProductsAreCloseToFloat64(t *testing.T) {
	everyMultiplier(t, func(t *testing.T, x *Multiplier) {
		s := Shape{31, 65, 1000}
		r := rand.New(rand.NewPCG(11, 12))
		m := maker{Rand: r, values: func() float32 { return float32(r.NormFloat64()) }}
		a, _ := m.matrix(s.M, s.K, false)
		b, _ := m.matrix(s.K, s.N, true)
		c, _ := m.matrix(s.M, s.N, false)
		x.Multiply(c, a, b, s, 0)
		for i := range s.M {
			for j := range s.N {
				var sum float64
				for k := range s.K {
					sum += float64(a.Data[i*a.Stride+k]) * float64(b.Data[j*b.Stride+k])
				}
				require.InDelta(t, sum, c.Data[i*c.Stride+j], 1e-4)
			}
		}
	})
}

func TestMultiplyAllocatesNothing(t *testing.T) {
	everyMultiplier(t, func(t *testing.T, x *Multiplier) {
		v := make([]float32, 300*300)
		for _, s := range []Shape{{1, 200, 30}, {64, 32, 64}, {37, 10, 291}, {130, 140, 290}} {
			for mode := range 4 {
				a, b := Matrix{v, 300, mode&1 != 0}, Matrix{v, 300, mode&2 != 0}
				c := Matrix{Data: make([]float32, s.M*s.N), Stride: s.N}
				require.Zero(t, testing.AllocsPerRun(3, func() { x.Multiply(c, a, b, s, 1) }), "%v", s)
			}
		}
	})
}

func TestMultiplyRefusesShortMatrices(t *testing.T) {
	x := New()
	v := func(n, stride int, transposed bool) Matrix { return Matrix{make([]float32, n), stride, transposed} }
	s := Shape{2, 3, 4}
	multiply := func(c, a, b Matrix) func() { return func() { x.Multiply(c, a, b, s, 0) } }
	require.NotPanics(t, multiply(v(6, 3, false), v(8, 4, false), v(12, 4, true)))
	require.Panics(t, multiply(v(5, 3, false), v(8, 4, false), v(12, 4, true)))
	require.Panics(t, multiply(v(6, 3, false), v(7, 4, false), v(12, 4, true)))
	require.Panics(t, multiply(v(6, 3, false), v(8, 4, false), v(11, 4, true)))
	require.Panics(t, multiply(v(6, 3, false), v(8, 3, false), v(12, 4, true)), "rows overlap")
	require.Panics(t, multiply(v(6, 3, true), v(8, 4, false), v(12, 4, true)), "C is transposed")
	require.Panics(t, func() { x.Multiply(v(0, 1, false), v(0, 1, false), v(0, 1, false), Shape{-1, 1, 1}, 0) })
}

// The order of operations is part of the package's name, and every processor has the same.
func TestString(t *testing.T) {
	require.Equal(t, "ringtrain fma256", New().String())
	everyMultiplier(t, func(t *testing.T, x *Multiplier) { require.Equal(t, New().String(), x.String()) })
}

func FuzzMultiply(f *testing.F) {
	f.Add(uint64(1), uint8(13), uint8(33), uint16(257), uint8(3), uint8(1))
	f.Fuzz(func(t *testing.T, seed uint64, rows, columns uint8, inner uint16, mode, shift uint8) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := maker{Rand: r, shift: int(shift % 16), gap: int(shift / 16), values: func() float32 { return float32(r.NormFloat64()) }}
		for _, k := range available() {
			compare(t, &Multiplier{kernels: k}, m, Shape{int(rows) % 64, int(columns), int(inner) % (2*Block + 9)}, mode&1 != 0, mode&2 != 0, float32(mode>>2&1))
		}
	})
}
