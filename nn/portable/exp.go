package portable

import "math"

// ln 2 in two parts. The first has 32 bits, so that its multiple by an exponent is exact.
const (
	ln2Hi = 0x1.62e42feep-1
	ln2Lo = 0x1.a39ef35793c76p-33
)

const (
	expLeast = -745.2 // exp is 0 below it
	expMost  = 709.8  // exp is infinite above it
)

// expTerms are 1/k! for k from 14 to 1. The next term of the series is below 2⁻⁵⁶ for
// |r| <= ln 2/2.
var expTerms = [...]float64{
	1. / 87178291200, 1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320, 1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1,
}

// Exp returns e to the power of x. It is eʳ·2ⁿ with |r| <= ln 2/2, and eʳ is a Taylor
// series. Subnormal results have larger errors.
func Exp(x float64) float64 {
	switch {
	case x != x:
		return x
	case x < expLeast:
		return 0
	case x > expMost:
		return math.Inf(1)
	}
	n := math.Floor(float64(x/math.Ln2) + .5)
	hi, lo := x-float64(n*ln2Hi), float64(n*ln2Lo)
	r := hi - lo
	rest := (hi - r) - lo // what rounding r lost
	p := 0.
	for _, c := range expTerms {
		p = float64(p*r) + c
	}
	// eʳ = 1 + r·p. The parts of r are added last, the small one first.
	return math.Ldexp(1+(r+(rest+float64(r*(p-1)))), int(n))
}
