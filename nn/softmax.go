package nn

// Softmax is softmax(x·Wᵀ + b) for each row, Thinc's Softmax.v1. W and b start at zero.
// Its Backprop takes the gradient with respect to the logits, not the probabilities; for
// a cross-entropy loss that is probabilities minus targets. A row with several dimensions
// is read as one vector.
type Softmax struct {
	// Out is the number of classes; 0 means that the model decides.
	Out int
	// In is the number of inputs to insist on; 0 means any.
	In int
	// InitW sets the initial W; nil means Zeros.
	InitW Initializer
	// InitB sets the initial b and is given the shape of W; nil means Zeros.
	InitB Initializer

	affine affine
}

// Init declares W (nO, nI) and b (nO). Only the loss may compute with the result.
func (l *Softmax) Init(in, out []int, b *Builder) ([]int, error) {
	if b.mixed {
		return nil, b.errorf("Softmax must be the last layer, because its gradient is that of a loss; use Linear here, or put it last")
	}
	init := l.InitW
	if init == nil {
		init = Zeros
	}
	return l.affine.declare(in, out, affineSettings{out: l.Out, in: l.In, initW: init, initB: l.InitB}, b)
}

// Forward takes rows of nI and returns rows of nO probabilities.
func (l *Softmax) Forward(p *Pass, x Tensor) (Tensor, Backprop) { return l.forward(p, x, joint{}) }

func (l *Softmax) forward(p *Pass, x Tensor, j joint) (Tensor, Backprop) {
	y := l.affine.forward(p, x, false, j)
	if p.bare != l {
		p.Backend.Softmax(y.Data, y.Data, l.affine.nO)
	}
	return y, func(dlogits Tensor) Tensor { return l.affine.backward(p, x, dlogits.Data, j) }
}

func isSoftmax(l Layer) bool {
	_, ok := l.(*Softmax)
	return ok
}

var _ Layer = (*Softmax)(nil)
