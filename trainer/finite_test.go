package trainer

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

func TestFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := make([]float32, rapid.IntRange(0, 40).Draw(t, "length"))
		for i := range x {
			x[i] = math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
			if y := float64(x[i]); math.IsNaN(y) || math.IsInf(y, 0) {
				x[i] = rapid.SampledFrom([]float32{0, -math.MaxFloat32, math.SmallestNonzeroFloat32}).Draw(t, "finite")
			}
		}
		require.True(t, finite(x))
		if len(x) == 0 {
			return
		}
		i := rapid.IntRange(0, len(x)-1).Draw(t, "place")
		x[i] = rapid.SampledFrom([]float32{float32(math.NaN()), -float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}).Draw(t, "bad")
		require.False(t, finite(x), "%v at %d of %d", x[i], i, len(x))
	})
}

// testParams is parameters of 1000, 10 and 100 elements.
func testParams(t *testing.T) *nn.Params {
	be := cpu.New(cpu.Options{})
	t.Cleanup(func() { be.Close() })
	b := nn.NewBuilder(1)
	b.Param("a", []int{1000}, nn.Zeros)
	b.Param("b", []int{10}, nn.Zeros)
	b.Param("c", []int{100}, nn.Zeros)
	p, err := b.Build(be)
	require.NoError(t, err)
	return p
}

func TestNotFiniteNamesTheLastParameter(t *testing.T) {
	p := testParams(t)
	end := p.Grads.Len()
	require.Zero(t, notFinite(p, 0, end))
	require.Empty(t, parameterName(p, 0))
	p.Lookup("a").Grads.Float32s()[7] = float32(math.NaN())
	require.Equal(t, "a", parameterName(p, notFinite(p, 0, end)))
	require.Zero(t, notFinite(p, 8, end))
	p.Lookup("b").Grads.Float32s()[9] = float32(math.Inf(-1))
	require.Equal(t, "b", parameterName(p, notFinite(p, 0, end)), "the backward pass met it first")
	require.Equal(t, "a", parameterName(p, notFinite(p, 0, p.Lookup("b").Offset)))
}

func TestBrokenValueIsNamed(t *testing.T) {
	p := testParams(t)
	require.Empty(t, brokenValue(p))
	p.Lookup("c").Values.Float32s()[99] = float32(math.Inf(1))
	require.Equal(t, "c", brokenValue(p))
	p.Lookup("b").Values.Float32s()[0] = float32(math.NaN())
	require.Equal(t, "b", brokenValue(p))
}

func TestCuts(t *testing.T) {
	p := testParams(t)
	b, c := p.Lookup("b").Offset, p.Lookup("c").Offset
	for bytes, want := range map[int][]int{
		1 << 20: {0},
		1:       {c, b, 0},
		400:     {c, 0}, // b is too small, and the first parameter is never alone at offset 0
		404:     {b, 0},
		4 * 200: {0},
	} {
		require.Equal(t, want, cuts(p, bytes), "%d bytes", bytes)
	}
}

// What is looked at as a sum of blocks is found wherever it is, and large
// elements whose sum is not finite are.
func TestFiniteInBlocks(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, n := range []int{8192, 20_001} {
		x := make([]float32, n)
		for _, at := range []int{0, 2047, 2048, n / 2, n - 1} {
			for _, bad := range []float32{inf, -inf, nan} {
				x[at] = bad
				require.False(t, finite(x), "%v at %d of %d", bad, at, n)
				x[at] = 0
			}
		}
		x[1], x[2049] = inf, -inf
		require.False(t, finite(x))
		for i := range x {
			x[i] = math.MaxFloat32
		}
		require.True(t, finite(x))
	}
}

func BenchmarkFinite(b *testing.B) {
	x := make([]float32, 1<<17)
	b.SetBytes(4 << 17)
	for b.Loop() {
		if !finite(x) {
			b.Fatal("zeros are finite")
		}
	}
}
