package nn

// Linear is y = x·Wᵀ + b, Thinc's Linear.v1. A row with several dimensions is read as one
// vector.
type Linear struct {
	// Out is the number of outputs; 0 means that the model decides.
	Out int
	// In is the number of inputs to insist on; 0 means any.
	In int
	// InitW sets the initial W; nil means GlorotUniform.
	InitW Initializer
	// InitB sets the initial b and is given the shape of W; nil means Zeros.
	InitB Initializer

	affine affine
}

// Init declares W (nO, nI) and b (nO).
func (l *Linear) Init(in, out []int, b *Builder) ([]int, error) {
	return l.affine.declare(in, out, affineSettings{out: l.Out, in: l.In, initW: orGlorot(l.InitW), initB: l.InitB}, b)
}

// Forward takes rows of nI and returns rows of nO.
func (l *Linear) Forward(p *Pass, x Tensor) (Tensor, Backprop) { return l.forward(p, x, joint{}) }

func (l *Linear) forward(p *Pass, x Tensor, j joint) (Tensor, Backprop) {
	y := l.affine.forward(p, x, false, j)
	return y, func(dy Tensor) Tensor { return l.affine.backward(p, x, dy.Data, j) }
}

var _ Layer = (*Linear)(nil)
