package cpu

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// The sum of many rows is as exact as that of a few.
func TestSumOfManyRows(t *testing.T) {
	b := New(Options{})
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	for _, rows := range []int{1, sumBlock, sumBlock + 1, 1_000_000} {
		sum := nn.Host([]float32{0, 1})
		b.SumRows(sum, nn.Host(slices.Repeat([]float32{.1, .3}, rows)))
		require.InEpsilon(t, .1*float64(rows), sum.Float32s()[0], 1e-4)
		require.InEpsilon(t, 1+.3*float64(rows), sum.Float32s()[1], 1e-4)
	}
}
