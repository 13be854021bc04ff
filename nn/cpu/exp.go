package cpu

import "math"

// exp and normal are the only float32 transcendental functions of the backends. They use
// nothing but rounded products, sums and quotients, so that every processor and every
// vector width can compute the same bits. The explicit conversions forbid the compiler to
// fuse a product with a sum.

const (
	roundTo  = 0x1.8p23      // adding it to a small number rounds to an integer, in the low bits
	log2e    = 1.44269504089 // 1/ln 2
	ln2Hi    = 0.693359375   // ln 2 to 9 bits, so that a multiple by an exponent is exact
	ln2Lo    = -2.12194440e-4
	expLeast = -87.33654 // exp is 0 below it, not subnormal
	expMost  = 88.72283  // exp is infinite above it
)

// expTerms are the coefficients of a polynomial p, the highest first: eʳ is about
// p(r)·r² + r + 1.
var expTerms = [6]float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1}

// exp returns e to the power of x, with a relative error below 2⁻²². The reduction and the
// polynomial are those of Cephes (Moshier, 1989).
func exp(x float32) float32 {
	switch {
	case x < expLeast:
		return 0
	case x > expMost:
		return float32(math.Inf(1))
	}
	shifted := float32(x*log2e) + roundTo
	n := shifted - roundTo
	r := x - float32(n*ln2Hi)
	r -= float32(n * ln2Lo)
	p := expTerms[0]
	for _, c := range expTerms[1:] {
		p = float32(p*r) + c
	}
	p = float32(p*float32(r*r)) + r
	p++
	// 2ⁿ in two factors, because n is 128 for the largest x.
	k := int32(math.Float32bits(shifted) - math.Float32bits(roundTo))
	return float32(p*power(k>>1)) * power(k-k>>1)
}

// power returns 2ᵏ for k from -126 to 127.
func power(k int32) float32 { return math.Float32frombits(uint32(k+127) << 23) }

const (
	inverseRoot2Pi = 0.3989422804 // 1/√(2π)
	slope          = .27          // see normal
)

// normalTerms are the coefficients of a polynomial p, the highest first: Φ(-|x|)·exp(x²/2)
// is about p(t)·t.
var normalTerms = [9]float32{
	2.910702821e-2, -1.272421198e-1, 1.714446873e-1, -7.12139169e-2, 1.092772064e-1, 7.140606258e-2, 1.01980367e-1, 1.075186033e-1, 1.077220931e-1,
}

// normal returns Φ(x) and exp(-x²/2), from which the density of the normal distribution
// follows. Φ(-|x|)·exp(x²/2) is a polynomial in t = 1/(1+slope·|x|), interpolated at
// Chebyshev nodes for |x| up to 14, so that small probabilities keep their digits: the
// relative error of Φ is below 2⁻¹⁷ for x > -12, and its absolute error below 2⁻²².
func normal(x float32) (cumulative, e float32) {
	e = exp(float32(float32(-.5*x) * x))
	a := x
	if x < 0 {
		a = -x
	}
	t := 1 / (1 + float32(slope*a))
	p := normalTerms[0]
	for _, c := range normalTerms[1:] {
		p = float32(p*t) + c
	}
	tail := float32(float32(p*t) * e)
	if x < 0 {
		return tail, e
	}
	return 1 - tail, e
}

// expLoop sets y = exp(y - top).
func expLoop(y []float32, top float32) {
	for i, v := range y {
		y[i] = exp(v - top)
	}
}
