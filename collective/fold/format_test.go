package fold

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A layout describes a format as its standard does. The tests compute from it, in
// float64, and share no code with the code under test.
type layout struct {
	format             Format
	name               string
	exponent, fraction int // bits
}

var layouts = []layout{{Half, "half", 5, 10}, {Brain, "brain", 8, 7}}

func (l layout) infinity() uint16 { return 1<<15 - 1<<l.fraction }

// quiet returns the bit that is set in a quiet NaN.
func (l layout) quiet() uint16 { return 1 << (l.fraction - 1) }

func (l layout) isNaN(code uint16) bool { return code&0x7fff > l.infinity() }

// value returns the number of a code up to that of infinity. Infinity counts as the
// number that would follow the largest one.
func (l layout) value(code uint16) float64 {
	bias := 1<<(l.exponent-1) - 1
	e, f := int(code>>l.fraction), int(code&(1<<l.fraction-1))
	if e == 0 {
		return math.Ldexp(float64(f), 1-bias-l.fraction)
	}
	return math.Ldexp(float64(f+1<<l.fraction), e-bias-l.fraction)
}

// values returns the numbers of all codes from zero to infinity, in order.
func (l layout) values() []float64 {
	var all []float64
	for code := range l.infinity() + 1 {
		all = append(all, l.value(code))
	}
	return all
}

// nearest returns the code that x, not a NaN, must be rounded to.
func nearest(values []float64, x float32) uint16 {
	sign, size := uint16(0), math.Abs(float64(x))
	if math.Signbit(float64(x)) {
		sign = 1 << 15
	}
	above, exact := slices.BinarySearch(values, size)
	switch {
	case exact:
		return sign | uint16(above)
	case above == len(values):
		return sign | uint16(above-1)
	}
	up, down := values[above]-size, size-values[above-1]
	if up < down || up == down && above%2 == 0 {
		return sign | uint16(above)
	}
	return sign | uint16(above-1)
}

func TestWidenAllCodes(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			src := allCodes()
			dst, loop := make([]float32, len(src)), make([]float32, len(src))
			Widen(dst, src, l.format)
			widenEach(loop, src, l.format)
			same(t, loop, dst, "kernel and loop")
			for i, code := range src {
				x := float64(dst[i])
				require.Equal(t, code>>15 == 1, math.Signbit(x), "%x", code)
				switch size := code & 0x7fff; {
				case l.isNaN(code):
					require.True(t, math.IsNaN(x), "%x", code)
				case size == l.infinity():
					require.True(t, math.IsInf(x, 0), "%x", code)
				default:
					require.Equal(t, l.value(size), math.Abs(x), "%x", code)
				}
			}
		})
	}
}

func TestAllCodesRoundTrip(t *testing.T) {
	for _, l := range layouts {
		src := allCodes()
		wide, back := make([]float32, len(src)), make([]uint16, len(src))
		Widen(wide, src, l.format)
		Round(back, wide, l.format)
		for i, code := range src {
			if l.isNaN(code) {
				code |= l.quiet()
			}
			require.Equal(t, code, back[i], "%s", l.name)
		}
	}
}

func allCodes() []uint16 {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	return all
}

// Test around each number of the format and around the midpoint to the next: rounding
// changes nowhere else.
func TestRoundAtEveryBoundary(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			values := l.values()
			var src []float32
			for i := range len(values) - 1 {
				for _, x := range []float64{values[i], values[i]/2 + values[i+1]/2} {
					for _, bits := range neighbours(float32(x)) {
						src = append(src, math.Float32frombits(bits), math.Float32frombits(bits|1<<31))
					}
				}
			}
			src = append(src, float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -math.MaxFloat32)
			checkRound(t, l, values, src)
		})
	}
}

func neighbours(x float32) []uint32 {
	bits := math.Float32bits(x)
	if bits == 0 {
		return []uint32{0, 1}
	}
	return []uint32{bits - 1, bits, bits + 1}
}

func TestRoundAnything(t *testing.T) {
	for _, l := range layouts {
		checkRound(t, l, l.values(), pool32(1<<18, seeded()))
	}
}

// checkRound checks Round and the loop that defines it, on all of src.
func checkRound(t *testing.T, l layout, values []float64, src []float32) {
	t.Helper()
	dst, loop := make([]uint16, len(src)), make([]uint16, len(src))
	Round(dst, src, l.format)
	roundEach(loop, src, l.format)
	same(t, loop, dst, "kernel and loop")
	for i, x := range src {
		bits := math.Float32bits(x)
		if x != x {
			cut := uint16(bits >> (23 - l.fraction) & (1<<l.fraction - 1))
			if want := uint16(bits>>31)<<15 | l.infinity() | l.quiet() | cut; want != dst[i] {
				require.Equal(t, want, dst[i], "%s of NaN %x", l.name, bits)
			}
			continue
		}
		if want := nearest(values, x); want != dst[i] {
			require.Equal(t, want, dst[i], "%s of %v (%x)", l.name, x, bits)
		}
	}
}

func TestConversionKernelsEqualLoops(t *testing.T) {
	needKernels(t)
	const room = maxLength + offsets + 2*guard
	floats, blank := pool32(room, seeded()), pool32(room, seeded())
	codes, empty := make([]uint16, room), make([]uint16, room)
	r := seeded()
	for i := range codes {
		codes[i], empty[i] = uint16(r.Uint32()), uint16(r.Uint32())
	}
	wide, wantWide := make([]float32, room), make([]float32, room)
	narrow, wantNarrow := make([]uint16, room), make([]uint16, room)
	for _, l := range layouts {
		for n := range maxLength + 1 {
			for offset := range offsets {
				to, from := guard+offset, (7*offset+n)%offsets
				copy(wide, blank)
				copy(wantWide, blank)
				Widen(wide[to:][:n], codes[from:][:n], l.format)
				widenEach(wantWide[to:][:n], codes[from:][:n], l.format)
				same(t, wantWide, wide, "widen %s %d at %d from %d", l.name, n, to, from)

				copy(narrow, empty)
				copy(wantNarrow, empty)
				Round(narrow[to:][:n], floats[from:][:n], l.format)
				roundEach(wantNarrow[to:][:n], floats[from:][:n], l.format)
				same(t, wantNarrow, narrow, "round %s %d at %d from %d", l.name, n, to, from)
			}
		}
	}
}

// Rounding is monotone, and rounding a rounded number does not change it.
func TestRoundIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := rapid.SampledFrom(layouts).Draw(t, "layout")
		pair := []float32{rapid.Float32().Draw(t, "x"), rapid.Float32().Draw(t, "y")}
		slices.Sort(pair)
		codes, wide := make([]uint16, 2), make([]float32, 2)
		Round(codes, pair, l.format)
		Widen(wide, codes, l.format)
		require.LessOrEqual(t, wide[0], wide[1])
		again := make([]uint16, 2)
		Round(again, wide, l.format)
		require.Equal(t, codes, again)
	})
}
