package nn

// Gelu is y = z·Φ(z) with z = x·Wᵀ + b, Thinc's Gelu.v1 (Hendrycks and Gimpel, 2016). Φ is
// the distribution function of the normal distribution, not its approximation by tanh.
// LayerNorm and dropout may follow. A row with several dimensions is read as one vector.
type Gelu struct {
	// Out is the number of outputs; 0 means that the model decides.
	Out int
	// In is the number of inputs to insist on; 0 means any.
	In int
	// Dropout is the fraction of outputs set to 0, in [0, 1); see [Dropout].
	Dropout float32
	// Normalize puts a [LayerNorm], with parameters in the scope "norm", before the
	// dropout.
	Normalize bool
	// InitW sets the initial W; nil means HeNormal.
	InitW Initializer
	// InitB sets the initial b and is given the shape of W; nil means Zeros.
	InitB Initializer

	affine affine
	finish finish
}

// Init declares W (nO, nI) and b (nO).
func (l *Gelu) Init(in, out []int, b *Builder) ([]int, error) {
	init := l.InitW
	if init == nil {
		init = HeNormal
	}
	made, err := l.affine.declare(in, out, affineSettings{out: l.Out, in: l.In, initW: init, initB: l.InitB}, b)
	if err != nil {
		return nil, err
	}
	return made, l.finish.declare(l.Normalize, l.Dropout, made[0], b)
}

// Forward takes rows of nI and returns rows of nO.
func (l *Gelu) Forward(p *Pass, x Tensor) (Tensor, Backprop) { return l.forward(p, x, joint{}) }

func (l *Gelu) forward(p *Pass, x Tensor, j joint) (Tensor, Backprop) {
	z := l.affine.forward(p, x, false, j)
	y := Tensor{Shape: z.Shape, Data: p.Backend.Temp(z.Data.Len()), Lengths: z.Lengths}
	p.Backend.Gelu(y.Data, z.Data)
	y, back := l.finish.forward(p, y)
	return y, func(dy Tensor) Tensor {
		dz := back(dy).Data
		p.Backend.GeluGrad(dz, dz, z.Data)
		p.release(z.Data)
		return l.affine.backward(p, x, dz, j)
	}
}

var _ Layer = (*Gelu)(nil)
