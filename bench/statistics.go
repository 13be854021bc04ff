package bench

import (
	"math"
	"slices"
)

// Median returns the middle value, or the mean of the two in the middle. It is NaN for
// no values.
func Median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

func mean(values []float64) float64 {
	sum := 0.
	for _, x := range values {
		sum += x
	}
	return sum / float64(len(values))
}

// Quantile returns the smallest value that at least the fraction q of the values do
// not exceed (the nearest-rank definition). It is NaN for no values.
func Quantile(values []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if len(s) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(q * float64(len(s))))
	return s[min(max(rank, 1), len(s))-1]
}
