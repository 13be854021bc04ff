package catalog

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// R² and the root mean squared error are those of their definitions, for values around
// another mean than 0.
func TestRegressionMeasures(t *testing.T) {
	values, predictions := []float64{2, 3, 5, 6}, []float64{2.5, 3, 4, 6.5}
	c, total := nn.Counts{}, 0.
	for i, v := range values {
		d := predictions[i] - v
		c[nn.CountRows]++
		c[nn.CountLoss] += d * d / 2
		c[nn.CountTargets] += v
		c[nn.CountSquares] += v * v
		total += (v - 4) * (v - 4)
	}
	require.InDelta(t, 1-1.5/total, determination.Of(c), 1e-12)
	rmse := rootMeanSquare(10)
	require.InDelta(t, 10*math.Sqrt(1.5/4), rmse.Of(c), 1e-12)
	require.True(t, rmse.Lower)
	require.False(t, determination.Lower)
}

// Measures are finite where R² has no definition: without rows, and if all test values are
// equal, even if sums in float32 make their variance a little more or less than 0.
func TestRegressionMeasuresAreFinite(t *testing.T) {
	equal := func(loss, rounding float64) nn.Counts {
		return nn.Counts{nn.CountRows: 3, nn.CountLoss: loss, nn.CountTargets: 6, nn.CountSquares: 12 + rounding}
	}
	require.Equal(t, 1., determination.Of(nn.Counts{}))
	require.Zero(t, rootMeanSquare(2).Of(nn.Counts{}))
	for _, rounding := range []float64{-1e-6, 0, 1e-6} {
		require.Equal(t, 1., determination.Of(equal(0, rounding)))
		require.Equal(t, 0., determination.Of(equal(.5, rounding)))
	}
}
