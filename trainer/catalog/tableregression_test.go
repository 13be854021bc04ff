package catalog

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// R² and the root mean squared error are those of their definitions, for values around
// another mean than 0, also one that is large compared with their spread.
func TestRegressionMeasures(t *testing.T) {
	for _, mean := range []float64{4, 4096} {
		values, predictions := []float64{-2, -1, 1, 2}, []float64{-1.5, -1, 0, 2.5}
		c, total, test := nn.Counts{}, 0., []float32(nil)
		for i, v := range values {
			d := predictions[i] - v
			c[nn.CountRows]++
			c[nn.CountLoss] += d * d / 2
			total += v * v
			test = append(test, float32(v+mean))
		}
		r2, rmse := determination(test), rootMeanSquare(10)
		require.InDelta(t, 1-1.5/total, r2.Of(c), 1e-12)
		require.InDelta(t, 10*math.Sqrt(1.5/4), rmse.Of(c), 1e-12)
		require.True(t, rmse.Lower)
		require.False(t, r2.Lower)
	}
}

// Measures are finite where R² has no definition: without rows, and if all test values are
// equal.
func TestRegressionMeasuresAreFinite(t *testing.T) {
	require.Equal(t, 1., determination(nil).Of(nn.Counts{}))
	require.Zero(t, rootMeanSquare(2).Of(nn.Counts{}))
	for _, equal := range [][]float32{{.1}, {.1, .1, .1}, {1e30, 1e30, 1e30}} {
		require.Equal(t, 1., determination(equal).Of(nn.Counts{nn.CountRows: 3}))
		require.Equal(t, 0., determination(equal).Of(nn.Counts{nn.CountRows: 3, nn.CountLoss: .5}))
	}
}
