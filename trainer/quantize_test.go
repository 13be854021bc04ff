package trainer

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// draws are numbers of many magnitudes.
func draws(n int, seed uint64) []float32 {
	random := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(random.NormFloat64() * math.Exp2(float64(random.IntN(20)-10)))
	}
	return x
}

// No element is further off than half a level of its block, and what is lost is
// kept to the bit.
func TestQuantize(t *testing.T) {
	for _, n := range []int{0, 1, 2, 255, 256, 257, 1000} {
		x, rest, got := draws(n, 3), make([]float32, n), make([]float32, n)
		b := make([]byte, quantizedLen(n))
		quantize(b, rest, x)
		dequantize(got, b)
		for lo := 0; lo < n; lo += quantBlock {
			block, most := x[lo:min(lo+quantBlock, n)], 0.
			for _, v := range block {
				most = max(most, math.Abs(float64(v)))
			}
			for i, v := range block {
				require.InDelta(t, v, got[lo+i], most/254*(1+1e-5), "element %d of %d", lo+i, n)
				require.Equal(t, v-got[lo+i], rest[lo+i])
			}
		}
	}
}

func TestQuantizeCorners(t *testing.T) {
	for _, c := range []struct{ x, want []float32 }{
		{[]float32{0, 0}, []float32{0, 0}},
		{[]float32{127, -127, 1, .5, 1.5, -.5, -2.5}, []float32{127, -127, 1, 0, 2, 0, -2}},
		{[]float32{math.SmallestNonzeroFloat32, -0x1p-101}, []float32{0, 0}},
		{[]float32{1e38, -1e-38}, []float32{1e38, 0}},
	} {
		b, rest, got := make([]byte, quantizedLen(len(c.x))), make([]float32, len(c.x)), make([]float32, len(c.x))
		quantize(b, rest, c.x)
		dequantize(got, b)
		for i := range c.x {
			require.InEpsilon(t, 1+c.want[i], 1+got[i], 1e-6, "%v", c.x)
			require.Equal(t, c.x[i]-got[i], rest[i])
		}
	}
	nan := float32(math.NaN())
	quantize(make([]byte, quantizedLen(2)), make([]float32, 2), []float32{nan, float32(math.Inf(1))}) // means nothing, and breaks nothing
}

func BenchmarkQuantize(b *testing.B) {
	x := draws(1<<16, 1)
	rest, packed := make([]float32, len(x)), make([]byte, quantizedLen(len(x)))
	b.Run("pack", func(b *testing.B) {
		b.SetBytes(int64(4 * len(x)))
		for b.Loop() {
			quantize(packed, rest, x)
		}
	})
	b.Run("unpack", func(b *testing.B) {
		b.SetBytes(int64(4 * len(x)))
		for b.Loop() {
			dequantize(rest, packed)
		}
	})
	b.Run("topk", func(b *testing.B) {
		b.SetBytes(int64(4 * len(x)))
		kept := make([]byte, len(x)/100*entryLen)
		for b.Loop() {
			keepLargest(kept, rest, x, len(x)/100)
		}
	})
}
