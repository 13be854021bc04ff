package nn

// A Backprop takes the gradient of the loss by a layer's output, adds to the
// gradients of the layer's parameters, and returns the gradient by its input.
// It is called at most once, before the backend recycles temporary memory. It
// may overwrite dy. It returns the zero Tensor if nothing before the layer has
// parameters (see [Builder.NeedsInputGradient]).
type Backprop func(dy Tensor) (dx Tensor)

// A Layer is a differentiable function with parameters. It belongs to one model
// and to one goroutine at a time.
type Layer interface {
	// Init fixes the layer's dimensions and declares its parameters. in is the
	// shape of one row of input; out that of one row of output, or nil when it
	// is not known. Init returns the shape of one row of output. A mistake in
	// the shapes is an error here and never a panic later. Init is called once.
	Init(in, out []int, b *Builder) ([]int, error)
	// Forward computes y, which lives in temporary memory of p.Backend (or is
	// x), and what carries a gradient back. p is valid until back has returned.
	Forward(p *Pass, x Tensor) (y Tensor, back Backprop)
}
