package portable

import "math"

// π/2 in three parts. The first two have 33 bits each, so that their multiples by a
// number of quarter turns are exact.
const (
	quarter1 = 0x1.921fb544p+0
	quarter2 = 0x1.0b4611a6p-34
	quarter3 = 0x1.3198a2e037073p-69
)

const mostAngle = 1 << 19 // beyond it the number of quarter turns has too many bits

// sinTerms and cosTerms are ±1/k! for odd and for even k. The next terms of the series are
// below 2⁻⁶⁰ for |r| <= π/4.
var (
	sinTerms = [...]float64{1. / 355687428096000, -1. / 1307674368000, 1. / 6227020800, -1. / 39916800, 1. / 362880, -1. / 5040, 1. / 120, -1. / 6, 1}
	cosTerms = [...]float64{-1. / 6402373705728000, 1. / 20922789888000, -1. / 87178291200, 1. / 479001600, -1. / 3628800, 1. / 40320, -1. / 720, 1. / 24, -1. / 2, 1}
)

// Sin returns the sine of an angle in radians. Its error is at most 2⁻⁵². For angles beyond
// 2¹⁹ it returns NaN.
func Sin(x float64) float64 {
	s, c, turns := sincos(x)
	switch turns & 3 {
	case 0:
		return s
	case 1:
		return c
	case 2:
		return -s
	}
	return -c
}

// Cos returns the cosine of an angle in radians. Its error is at most 2⁻⁵². For angles
// beyond 2¹⁹ it returns NaN.
func Cos(x float64) float64 {
	s, c, turns := sincos(x)
	switch turns & 3 {
	case 0:
		return c
	case 1:
		return -s
	case 2:
		return -c
	}
	return s
}

// sincos returns the sine and cosine of x less a number of quarter turns.
func sincos(x float64) (sin, cos float64, turns int) {
	if !(math.Abs(x) <= mostAngle) {
		return math.NaN(), math.NaN(), 0
	}
	n := math.Floor(float64(x/(math.Pi/2)) + .5)
	r := x - float64(n*quarter1)
	r -= float64(n * quarter2)
	r -= float64(n * quarter3)
	z := float64(r * r)
	s, c := 0., 0.
	for _, term := range sinTerms {
		s = float64(s*z) + term
	}
	for _, term := range cosTerms {
		c = float64(c*z) + term
	}
	return float64(r * s), c, int(n)
}
