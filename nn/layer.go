package nn

// A Backprop takes the gradient of the loss with respect to a layer's output, adds to the
// gradients of the layer's parameters, and returns the gradient with respect to its
// input. It is called at most once, before the backend recycles temporary memory. It may
// overwrite dy. The caller does not use dy afterwards, and the backend may reuse its memory,
// unless dx begins there too. If nothing before the layer has parameters, it returns the zero
// Tensor (see [Builder.NeedsInputGradient]).
type Backprop func(dy Tensor) (dx Tensor)

// A Layer is a differentiable function with parameters. It belongs to one model
// and to one goroutine at a time.
type Layer interface {
	// Init fixes the layer's dimensions and declares its parameters. in is the shape of
	// one row of input. out is the shape of one row of output, or nil if it is not known.
	// Init returns the shape of one row of output, and an error if shapes do not fit, so
	// that Forward never has to panic. It is called once.
	Init(in, out []int, b *Builder) ([]int, error)
	// Forward computes y, which lives in temporary memory of p.Backend (or is x), and
	// returns the Backprop that carries a gradient back. p stays valid until back
	// returns.
	Forward(p *Pass, x Tensor) (y Tensor, back Backprop)
}
