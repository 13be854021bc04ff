package cpu

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// every calls f for one in 97 of all numbers from lo to hi, by their bits.
func every(lo, hi float32, f func(x float32)) {
	for bits := uint64(0); bits < 1<<32; bits += 97 * 97 {
		if x := math.Float32frombits(uint32(bits)); x >= lo && x <= hi {
			f(x)
		}
	}
}

func TestExp(t *testing.T) {
	worst := 0.
	every(expLeast, expMost, func(x float32) {
		worst = max(worst, math.Abs(float64(exp(x))/math.Exp(float64(x))-1))
	})
	require.Less(t, worst, 0x1p-22)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct{ x, y float32 }{
		{0, 1}, {float32(math.Copysign(0, -1)), 1}, {inf, inf}, {-inf, 0}, {89, inf}, {-88, 0}, {-1e30, 0}, {1e30, inf}, {1e-30, 1},
	} {
		require.Equal(t, c.y, exp(c.x), "exp(%v)", c.x)
	}
	require.True(t, math.IsNaN(float64(exp(nan))))
}

func TestNormal(t *testing.T) {
	relative, absolute := 0., 0.
	every(-12, 40, func(x float32) {
		got, e := normal(x)
		want := math.Erfc(-float64(x)/math.Sqrt2) / 2
		relative = max(relative, math.Abs(float64(got)/want-1))
		absolute = max(absolute, math.Abs(float64(got)-want))
		if x < 12 {
			require.InEpsilon(t, math.Exp(-float64(x)*float64(x)/2), float64(e), 1e-5)
		}
	})
	require.Less(t, relative, 0x1p-17)
	require.Less(t, absolute, 0x1p-22)
	half, _ := normal(0)
	require.InDelta(t, .5, half, 1e-7)
	for x, want := range map[float32]float32{-40: 0, 40: 1, float32(math.Inf(1)): 1, float32(math.Inf(-1)): 0} {
		got, _ := normal(x)
		require.Equal(t, want, got, "Φ(%v)", x)
	}
}

// The kernels have the bits of the loops over the whole range.
func TestNormalKernelsEqualLoops(t *testing.T) {
	needKernels(t)
	eachWidth(t, normalKernelsEqualLoops)
}

func normalKernelsEqualLoops(t *testing.T) {
	var x []float32
	every(-100, 100, func(v float32) { x = append(x, v) })
	want, got := slices.Clone(x), slices.Clone(x)
	expLoop(want, .25)
	expLoop(got[fastExp(got, .25):], .25)
	same(t, want, got, "exp")
	geluLoop(want, x)
	done := fastGelu(got, x)
	geluLoop(got[done:], x[done:])
	same(t, want, got, "gelu")
	geluGradLoop(want, x, x)
	done = fastGeluGrad(got, x, x)
	geluGradLoop(got[done:], x[done:], x[done:])
	same(t, want, got, "geluGrad")
}
