package fold_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/fold"
)

func TestInto(t *testing.T) {
	a, b := []int64{1, -2, 3}, []int64{4, 5, -6}
	for _, c := range []struct {
		op   fold.Op
		want []int64
	}{
		{fold.Sum, []int64{5, 3, -3}},
		{fold.Min, []int64{1, -2, -6}},
		{fold.Max, []int64{4, 5, 3}},
		{fold.Prod, []int64{4, -10, -18}},
	} {
		dst := make([]int64, 3)
		fold.Into(c.op, dst, a, b)
		require.Equal(t, c.want, dst)

		alias := append([]int64(nil), b...)
		fold.Into(c.op, alias, a, alias)
		require.Equal(t, c.want, alias, "dst is an operand")
	}
}

func TestIntegersWrap(t *testing.T) {
	dst := make([]int32, 1)
	fold.Into(fold.Sum, dst, []int32{math.MaxInt32}, []int32{1})
	require.Equal(t, int32(math.MinInt32), dst[0])
	small := make([]uint8, 1)
	fold.Into(fold.Prod, small, []uint8{16}, []uint8{17})
	require.Equal(t, uint8(16), small[0])
}

func TestSpecialValues(t *testing.T) {
	nan, zero, neg := math.NaN(), 0.0, math.Copysign(0, -1)
	for _, c := range []struct {
		op         fold.Op
		a, b, want float64
	}{
		{fold.Min, nan, 1, nan}, {fold.Max, 1, nan, nan},
		{fold.Min, zero, neg, neg}, {fold.Min, neg, zero, neg},
		{fold.Max, zero, neg, zero}, {fold.Max, neg, zero, zero},
		{fold.Sum, math.Inf(1), math.Inf(-1), nan},
		{fold.Sum, 0x1p-1074, 0x1p-1074, 0x1p-1073},
	} {
		dst := make([]float64, 1)
		fold.Into(c.op, dst, []float64{c.a}, []float64{c.b})
		if math.IsNaN(c.want) {
			require.True(t, math.IsNaN(dst[0]), "%v", c)
			continue
		}
		require.Equal(t, math.Float64bits(c.want), math.Float64bits(dst[0]), "%v", c)
	}
}

// The order of operands decides the bits: a sum from the left differs from a sum from the
// right. (1 + 2^-24) + 2^-24 rounds down twice, 1 + 2^-23 does not.
func TestOneOperandAtATime(t *testing.T) {
	acc := []float32{1}
	fold.Into(fold.Sum, acc, acc, []float32{0x1p-24})
	fold.Into(fold.Sum, acc, acc, []float32{0x1p-24})
	require.Equal(t, float32(1), acc[0])
}

func TestScale(t *testing.T) {
	x := []float32{3, -6}
	fold.Scale(x, 1/float32(3))
	require.Equal(t, []float32{3 * (1 / float32(3)), -6 * (1 / float32(3))}, x)
}

func TestInstructions(t *testing.T) {
	require.Contains(t, []string{"", "AVX2", "AVX2 F16C", "NEON"}, fold.Instructions())
}
