package collectivetest

import "math"

// format is a 16-bit floating-point format: a sign, then exponent bits, then
// mantissa bits. It is deliberately a second, simple implementation in float64,
// because the suites test the contract.
type format struct{ exponent, mantissa int }

var (
	half  = format{5, 10} // IEEE 754 binary16
	brain = format{8, 7}  // bfloat16
)

func (f format) bias() int { return 1<<(f.exponent-1) - 1 }

// round returns the nearest value of the format, ties to even. x must be finite.
func (f format) round(x float32) uint16 {
	sign := uint16(math.Float32bits(x) >> 31 << 15)
	a := math.Abs(float64(x))
	exp := 1 - f.bias() // of subnormals and of the smallest normals
	if a > 0 {
		exp = max(exp, math.Ilogb(a))
	}
	q := math.RoundToEven(math.Ldexp(a, f.mantissa-exp))
	bits := (exp+f.bias())<<f.mantissa + int(q) - 1<<f.mantissa
	return sign | uint16(min(bits, (1<<f.exponent-1)<<f.mantissa))
}

// value returns the value of bits, which must be finite.
func (f format) value(bits uint16) float32 {
	exp, q := int(bits&0x7fff)>>f.mantissa, int(bits)&(1<<f.mantissa-1)
	if exp == 0 {
		exp = 1
	} else {
		q += 1 << f.mantissa
	}
	return float32(math.Copysign(math.Ldexp(float64(q), exp-f.bias()-f.mantissa), -float64(bits>>15)+.5))
}
