package collective

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/fold"
)

// Sums that go over all operands at once have the bits of one operand at a
// time, NaN and infinities among them, whichever operand the result replaces.
func TestChainOfFloatsTakesOneOperandAtATime(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var chain Chain
	for _, op := range []Op{Sum, Mean} {
		for size := 1; size <= 6; size++ {
			for _, n := range []int{1, 7, 8, 63, 64, 1000, 4096} {
				operands := make([][]float32, size)
				for k := range operands {
					operands[k] = make([]float32, n)
					for i := range operands[k] {
						operands[k][i] = math.Float32frombits(r.Uint32())
					}
				}
				want := append([]float32(nil), operands[0]...)
				for _, x := range operands[1:] {
					fold.Into(fold.Sum, want, want, x)
				}
				if op == Mean {
					fold.Scale(want, 1/float32(size))
				}
				for alias := -1; alias < size; alias++ {
					got, parts := make([]byte, 4*n), make([][]byte, size)
					for k, x := range operands {
						parts[k] = append([]byte(nil), Of(x).bytes()...)
					}
					if alias >= 0 {
						got = parts[alias]
					}
					chain.Fold(Float32, op, got, parts)
					require.Equal(t, Of(want).bytes(), got, "%v of %d operands of %d, into number %d", op, size, n, alias)
				}
			}
		}
	}
}

// Means of integers are of the exact sum and lose what follows the point.
func TestChainMeansOfIntegers(t *testing.T) {
	var chain Chain
	for _, n := range []int{1, 40, 4096} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			chainMean(t, &chain, n, []int32{math.MaxInt32, math.MaxInt32, math.MaxInt32 - 1}, math.MaxInt32-1)
			chainMean(t, &chain, n, []int32{-1, -1, 0}, 0)
			chainMean(t, &chain, n, []int64{math.MinInt64, math.MinInt64, math.MinInt64 + 1}, math.MinInt64+1)
			chainMean(t, &chain, n, []int64{math.MaxInt64, 2, math.MinInt64}, 0)
			chainMean(t, &chain, n, []uint8{255, 255, 254, 255}, 254)
		})
	}
}

// chainMean returns the mean of one operand per value, filled with that value.
func chainMean[T Element](t *testing.T, chain *Chain, n int, values []T, want T) {
	t.Helper()
	full := func(v T) []T {
		s := make([]T, n)
		for i := range s {
			s[i] = v
		}
		return s
	}
	var parts [][]byte
	for _, v := range values {
		parts = append(parts, Of(full(v)).bytes())
	}
	chain.Fold(TypeOf[T](), Mean, parts[1], parts)
	require.Equal(t, Of(full(want)).bytes(), parts[1], "mean of %v", values)
}
