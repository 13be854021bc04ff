package data

import "math/rand/v2"

// The generator must produce the same bytes on every machine. IEEE 754 fixes the results
// of +, -, *, / and square root, but a Go compiler may fuse x*y+z into one operation with
// one rounding, and functions of package math differ between architectures. So products
// are rounded by an explicit conversion, which forbids fusion, and the few functions
// needed are built from those operations.

// mul returns x*y, rounded once and never fused with a later addition.
func mul(x, y float64) float64 { return float64(x * y) }

// sincos returns sine and cosine of an angle of at most a few turns, to about 1e-9: the
// first Taylor terms at a sixteenth of the angle, then four doublings.
func sincos(angle float64) (sin, cos float64) {
	x := angle / 16
	q := mul(x, x)
	sin = mul(x, 1-mul(q/6, 1-mul(q/20, 1-mul(q/42, 1-q/72))))
	cos = 1 - mul(q/2, 1-mul(q/12, 1-mul(q/30, 1-mul(q/56, 1-q/90))))
	for range 4 {
		sin, cos = mul(2, mul(sin, cos)), 1-mul(2, mul(sin, sin))
	}
	return sin, cos
}

// logistic is a table of 1/(1+exp(x)) for |x| < logisticSpan.
type logistic [2 * logisticSpan * logisticSteps]float64

const (
	logisticSpan  = 8  // beyond it the function is treated as 1 or 0
	logisticSteps = 64 // table entries per unit of x
)

// newLogistic computes the table from powers of exp(1/logisticSteps).
func newLogistic() *logistic {
	const root = 1.0157477085866857 // exp(1/64)
	var t logistic
	const half = logisticSpan * logisticSteps
	power := 1.0
	for i := range half {
		t[half+i] = 1 / (1 + power)
		power = mul(power, root)
		t[half-1-i] = 1 - 1/(1+power)
	}
	return &t
}

// at returns 1/(1+exp(x)), with x rounded down to a table step.
func (t *logistic) at(x float64) float64 {
	switch {
	case x <= -logisticSpan:
		return 1
	case x >= logisticSpan:
		return 0
	}
	return t[int(mul(x+logisticSpan, logisticSteps))]
}

// noise draws uniform and normal numbers from PCG-DXSM. math/rand/v2 guarantees that its
// stream of words never changes.
type noise struct{ src rand.PCG }

// seed starts the stream identified by two numbers. They are hashed first, because PCG
// streams of neighbouring seeds start similarly.
func (n *noise) seed(a, b uint64) {
	d := newDraws(a, b)
	n.src.Seed(d.at(0), d.at(1))
}

// uniform returns a number in [lo, hi).
func (n *noise) uniform(lo, hi float64) float64 {
	return lo + mul(hi-lo, float64(n.src.Uint64()>>11)/(1<<53))
}

// normal returns a number with mean 0 and the given deviation: the sum of twelve 16-bit
// uniform numbers minus six. It is within 0.3 % of a normal distribution up to two
// deviations, and never exceeds six. It needs only addition.
func (n *noise) normal(deviation float64) float64 {
	var sum uint64
	for range 3 {
		w := n.src.Uint64()
		sum += w&0xffff + w>>16&0xffff + w>>32&0xffff + w>>48
	}
	// Each uniform number is k/65536 for k = 0..65535, with mean 1/2 - 1/131072.
	return mul(deviation, float64((float64(sum)+6)/65536)-6)
}
