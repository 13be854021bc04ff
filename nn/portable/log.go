package portable

import "math"

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
	// The terms 1/(2k+1) for k from 12 to 1; the next is below 2⁻⁶⁰. Those of even and of
	// odd k are two sums, which a processor can compute at the same time.
	w := float64(z * z)
	odd := float64(w*(1./23)) + 1./19
	odd = float64(w*odd) + 1./15
	odd = float64(w*odd) + 1./11
	odd = float64(w*odd) + 1./7
	odd = float64(w*odd) + 1./3
	even := float64(w*(1./25)) + 1./21
	even = float64(w*even) + 1./17
	even = float64(w*even) + 1./13
	even = float64(w*even) + 1./9
	even = float64(w*even) + 1./5
	p := odd + float64(z*even)
	// log(1+f) = 2·s + 2·s·z·p, and 2·s = f - s·f. So f itself, which is exact, is most of
	// the sum.
	tail := float64(s * (float64(2*float64(z*p)) - f))
	return float64(n*ln2Hi) + (f + (tail + float64(n*ln2Lo)))
}
