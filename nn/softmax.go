package nn

// Softmax is softmax(x·Wᵀ + b) for each row, Thinc's Softmax.v1. W and b start at zero.
// Its Backprop takes the gradient with respect to the logits, not the probabilities; for
// a cross-entropy loss that is probabilities minus targets. A row with several dimensions
// is read as one vector.
type Softmax struct {
	// Out is the number of classes; 0 means that the model decides.
	Out int
	// InitW sets the initial W; nil means Zeros.
	InitW Initializer
	// InitB sets the initial b and is given the shape of W; nil means Zeros.
	InitB Initializer

	affine affine
}

// Init declares W (nO, nI) and b (nO).
func (l *Softmax) Init(in, out []int, b *Builder) ([]int, error) {
	init := l.InitW
	if init == nil {
		init = Zeros
	}
	return l.affine.declare(in, out, affineSettings{out: l.Out, initW: init, initB: l.InitB}, b)
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

var _ Layer = (*Softmax)(nil)
