package portable

import "math"

// logTerms are 1/(2k+1) for k from 12 to 1. The next term of the series is below 2⁻⁶⁰ for
// f from √½ to √2.
var logTerms = [...]float64{1. / 25, 1. / 23, 1. / 21, 1. / 19, 1. / 17, 1. / 15, 1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3}

// Log returns the natural logarithm of x. With x = f·2ⁿ and s = (f-1)/(f+1), it is
// n·ln 2 + 2·(s + s³/3 + s⁵/5 + ...), where f is between √½ and √2.
func Log(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	f, exponent := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f *= 2
		exponent--
	}
	f-- // exact
	n, s := float64(exponent), f/(2+f)
	z := float64(s * s)
	p := 0.
	for _, c := range logTerms {
		p = float64(p*z) + c
	}
	// log(1+f) = 2·s + 2·s·z·p, and 2·s = f - s·f. So f itself, which is exact, is most of
	// the sum.
	tail := float64(s * (float64(2*float64(z*p)) - f))
	return float64(n*ln2Hi) + (f + (tail + float64(n*ln2Lo)))
}
