package nn

// Relu is y = max(0, x·Wᵀ + b), followed by dropout while training; Thinc's Relu.v1. A
// row with several dimensions is read as one vector.
type Relu struct {
	// Out is the number of outputs; 0 means that the model decides.
	Out int
	// Dropout is the fraction of outputs set to 0, in [0, 1); see [Dropout].
	Dropout float32
	// InitW sets the initial W; nil means GlorotUniform.
	InitW Initializer
	// InitB sets the initial b and is given the shape of W; nil means Zeros.
	InitB Initializer

	affine affine
	drop   dropper
}

// Init declares W (nO, nI) and b (nO).
func (l *Relu) Init(in, out []int, b *Builder) ([]int, error) {
	if err := l.drop.declare(l.Dropout, b); err != nil {
		return nil, err
	}
	return l.affine.declare(in, out, affineSettings{l.Out, orGlorot(l.InitW), l.InitB}, b)
}

// Forward takes rows of nI and returns rows of nO.
func (l *Relu) Forward(p *Pass, x Tensor) (Tensor, Backprop) { return l.forward(p, x, joint{}) }

func (l *Relu) forward(p *Pass, x Tensor, j joint) (Tensor, Backprop) {
	y := l.affine.forward(p, x, true, j)
	scale := float32(1)
	if l.drop.active(p) {
		l.drop.apply(p, y.Data, y.Data, l.affine.nO)
		scale = 1 / (1 - l.Dropout)
	}
	// Dropout zeroes an output just as relu does, and both block its gradient. ReluGrad's
	// single comparison with y undoes both, so no mask is stored or drawn again.
	return y, func(dy Tensor) Tensor {
		if !j.leaves {
			p.Backend.ReluGrad(dy.Data, dy.Data, y.Data, scale)
		}
		return l.affine.backward(p, x, dy.Data, j)
	}
}

var _ Layer = (*Relu)(nil)
