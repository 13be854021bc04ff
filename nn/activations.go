package nn

// Activations is the arithmetic of activation functions, besides Relu and Softmax. exp
// and Φ, the distribution function of the normal distribution, are the float32 functions
// of package nn/cpu. Every product and every sum is rounded to float32, in the order
// written.
type Activations interface {
	// Gelu sets y = x·Φ(x). Φ is (1+erf(x/√2))/2 to within rounding, not an approximation
	// by tanh.
	Gelu(y, x Buffer)
	// GeluGrad sets dx = dy·(Φ(x) + x·φ(x)), where φ(x) = exp(-x²/2)/√(2π).
	GeluGrad(dx, dy, x Buffer)
	// Maxout sets each element of y to the largest of the given number of pieces, adjacent
	// elements of x. A NaN wins only as the first piece. y is not x.
	Maxout(y, x Buffer, pieces int)
	// MaxoutGrad sets dx = dy at the piece that Maxout of x chose, the first of several
	// equal ones, and 0 at the others. dx may be x, but not dy.
	MaxoutGrad(dx, dy, x Buffer, pieces int)
}
