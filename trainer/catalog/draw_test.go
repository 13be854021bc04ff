package catalog

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Indexes are drawn as often as their probabilities say.
func TestDraw(t *testing.T) {
	p := []float32{.1, 0, .5, .1, .3}
	for name, c := range map[string]struct {
		temperature float64
		k           int
		want        []float64
	}{
		"as they are": {1, 0, []float64{.1, 0, .5, .1, .3}},
		"hot":         {math.Inf(1), 0, []float64{.25, 0, .25, .25, .25}},
		"cooler":      {.5, 0, []float64{.01 / .36, 0, .25 / .36, .01 / .36, .09 / .36}},
		"two":         {1, 2, []float64{0, 0, .625, 0, .375}},
		"of equals":   {1, 3, []float64{.1 / .9, 0, .5 / .9, 0, .3 / .9}},
		"more":        {1, 9, []float64{.1, 0, .5, .1, .3}},
		"greedy":      {0, 0, []float64{0, 0, 1, 0, 0}},
	} {
		const draws = 20_000
		got, random := make([]float64, len(p)), rand.New(rand.NewPCG(1, 2))
		for range draws {
			got[draw(p, c.temperature, c.k, random)] += 1. / draws
		}
		require.InDeltaSlice(t, c.want, got, .015, name)
	}
	nan := float32(math.NaN())
	require.Equal(t, -1, draw([]float32{0, nan}, 1, 0, nil))
	require.Equal(t, -1, draw(nil, 0, 0, nil))
}
