package sgemm

import "math"

const (
	// dropped masks the low bits of a float64 that a float32 has no room for. They equal
	// halfway if the float64 is exactly between two float32.
	dropped = 1<<29 - 1
	halfway = 1 << 28
	// leastNormal is 2⁻¹²⁶ as the bits of a float64. Below it, a float32 drops more bits.
	leastNormal = (1023 - 126) << 52
)

// fma returns x·y + z, rounded once.
//
// The product of two float32 is exact in float64. Only the sum is rounded, to 53 bits, and
// then again to 24. The second rounding goes wrong only if the first one ended halfway
// between two float32.
func fma(x, y, z float32) float32 {
	p := float64(float64(x) * float64(y)) // exact, so fusion would do no harm; but scripts/fused.sh finds none
	s := p + float64(z)
	if doubtful(s) {
		s = toOdd(s, p, float64(z))
	}
	return float32(s)
}

// doubtful reports whether rounding s to float32 could differ from rounding the exact sum. It
// may return true for others, too. It is false for ±0.
func doubtful(s float64) bool {
	u := math.Float64bits(s)
	return u&dropped == halfway || u<<1-1 < leastNormal<<1-1
}

// toOdd returns p + z rounded to odd, given s, the sum rounded to nearest: of the two
// float64 around an inexact sum, the one with an odd last bit. It is never halfway between
// two float32, so a second rounding gives what one alone would (Boldo and Melquiond,
// Emulation of FMA and correctly rounded sums, 2008).
func toOdd(s, p, z float64) float64 {
	if s-s != 0 { // infinite or NaN
		return s
	}
	// Knuth's two-sum: s + rest is exact.
	virtual := s - p
	rest := (p - (s - virtual)) + (z - virtual)
	u := math.Float64bits(s)
	if rest == 0 || u&1 != 0 {
		return s
	}
	if (rest > 0) == (s > 0) {
		return math.Float64frombits(u + 1)
	}
	return math.Float64frombits(u - 1)
}
