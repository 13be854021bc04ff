package portable

import "math"

// Power returns x to the power of n >= 0, by repeated squaring. The bits equal those of
// math.Pow in Go, unless the result is subnormal.
func Power(x float64, n int) float64 {
	p := 1.
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			p = float64(p * x)
		}
		x = float64(x * x)
	}
	return p
}

// Normal returns a normally distributed number with mean 0 and deviation 1, made of two
// numbers that are uniform in [0, 1) (Box and Muller, 1958).
func Normal(u, v float64) float64 {
	return float64(math.Sqrt(float64(-2*Log(1-u))) * Cos(float64(2*math.Pi*v)))
}
