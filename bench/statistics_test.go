package bench_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/bench"
)

func TestStatistics(t *testing.T) {
	require.True(t, math.IsNaN(bench.Median(nil)))
	require.True(t, math.IsNaN(bench.Quantile(nil, .5)))
	require.Equal(t, 3., bench.Median([]float64{9, 1, 3}))
	require.Equal(t, 2.5, bench.Median([]float64{4, 1, 3, 2}))
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	require.Equal(t, 99., bench.Quantile(hundred, .99))
	require.Equal(t, 100., bench.Quantile(hundred, 1))
	require.Equal(t, 1., bench.Quantile(hundred, 0))
	require.Equal(t, 100., hundred[0], "the argument is not changed")
	require.Equal(t, 99., bench.Quantile(hundred[1:], .99), "the longest of fewer than a hundred")
}

func TestQuantileIsOneOfThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 50).Draw(t, "values")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		x := bench.Quantile(values, q)
		require.Contains(t, values, x)
		within := 0
		for _, v := range values {
			if v <= x {
				within++
			}
		}
		require.GreaterOrEqual(t, float64(within), q*float64(len(values))-1e-9)
		m := bench.Median(values)
		require.GreaterOrEqual(t, m, slices.Min(values))
		require.LessOrEqual(t, m, slices.Max(values))
	})
}
