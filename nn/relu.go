package nn

// Relu is y = max(0, x·Wᵀ + b), Thinc's Relu.v1. LayerNorm and dropout may follow. A row
// with several dimensions is read as one vector.
type Relu struct {
	// Out is the number of outputs; 0 means that the model decides.
	Out int
	// In is the number of inputs to insist on; 0 means any.
	In int
	// Dropout is the fraction of outputs set to 0, in [0, 1); see [Dropout].
	Dropout float32
	// Normalize puts a [LayerNorm], with parameters in the scope "norm", before the
	// dropout.
	Normalize bool
	// InitW sets the initial W; nil means GlorotUniform.
	InitW Initializer
	// InitB sets the initial b and is given the shape of W; nil means Zeros.
	InitB Initializer

	affine affine
	finish finish
}

// Init declares W (nO, nI) and b (nO).
func (l *Relu) Init(in, out []int, b *Builder) ([]int, error) {
	made, err := l.affine.declare(in, out, affineSettings{out: l.Out, in: l.In, initW: orGlorot(l.InitW), initB: l.InitB}, b)
	if err != nil {
		return nil, err
	}
	return made, l.finish.declare(l.Normalize, l.Dropout, made[0], b)
}

// Forward takes rows of nI and returns rows of nO.
func (l *Relu) Forward(p *Pass, x Tensor) (Tensor, Backprop) { return l.forward(p, x, joint{}) }

func (l *Relu) forward(p *Pass, x Tensor, j joint) (Tensor, Backprop) {
	y := l.affine.forward(p, x, true, j)
	if l.Normalize {
		z, back := l.finish.forward(p, y)
		return z, func(dz Tensor) Tensor {
			dy := back(dz)
			p.Backend.ReluGrad(dy.Data, dy.Data, y.Data, 1)
			return l.affine.backward(p, x, dy.Data, j)
		}
	}
	scale := float32(1)
	if l.finish.drop.active(p) {
		l.finish.drop.apply(p, y.Data, y.Data, l.affine.nO)
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
