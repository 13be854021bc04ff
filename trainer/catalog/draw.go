package catalog

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/ringtrain/ringtrain/nn/portable"
)

// draw chooses an index with a chance in proportion to p[i] to the power of 1/temperature,
// among those of the k largest p, or among all if k is 0. A temperature of 0 means the
// index of the largest. Of equal p, the first count as larger. It returns -1 if no p is
// above 0.
func draw(p []float32, temperature float64, k int, random *rand.Rand) int {
	best := mostProbable(p)
	if best < 0 || temperature == 0 {
		return best
	}
	among := make([]int, 0, len(p))
	for i, q := range p {
		if q > 0 {
			among = append(among, i)
		}
	}
	if k > 0 && k < len(among) {
		slices.SortStableFunc(among, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
		among = among[:k]
	}
	top, sum := portable.Log(float64(p[best])), 0.
	chances := make([]float64, len(among))
	for i, at := range among {
		chances[i] = portable.Exp((portable.Log(float64(p[at])) - top) / temperature)
		sum += chances[i]
	}
	u := float64(random.Float64() * sum)
	for i, c := range chances {
		if u -= c; u < 0 {
			return among[i]
		}
	}
	return best // rounding has left something of u
}
