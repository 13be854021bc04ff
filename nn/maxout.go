package nn

// Maxout has several pieces per output, each x·Wᵀ + b with its own W and b, and returns the
// largest; Thinc's Maxout.v1 (Goodfellow et al., ICML 2013). The first of several equal
// pieces receives the gradient. LayerNorm and dropout may follow. A row with several
// dimensions is read as one vector.
type Maxout struct {
	// Out is the number of outputs; 0 means that the model decides.
	Out int
	// In is the number of inputs to insist on; 0 means any.
	In int
	// Pieces is the number of pieces of each output; 0 means 3.
	Pieces int
	// Dropout is the fraction of outputs set to 0, in [0, 1); see [Dropout].
	Dropout float32
	// Normalize puts a [LayerNorm], with parameters in the scope "norm", before the
	// dropout.
	Normalize bool
	// InitW sets the initial W; nil means GlorotUniform, whose range follows from the
	// first two dimensions, nO and nP, as in Thinc.
	InitW Initializer
	// InitB sets the initial b and is given the shape of W; nil means Zeros.
	InitB Initializer

	affine affine
	finish finish
	pieces int
}

// defaultPieces is Thinc's default.
const defaultPieces = 3

// Init declares W (nO, nP, nI) and b (nO, nP).
func (l *Maxout) Init(in, out []int, b *Builder) ([]int, error) {
	if l.Pieces < 0 {
		return nil, b.errorf("Pieces must be at least 0, not %d", l.Pieces)
	}
	if l.pieces = l.Pieces; l.pieces == 0 {
		l.pieces = defaultPieces
	}
	made, err := l.affine.declare(in, out, affineSettings{out: l.Out, in: l.In, initW: orGlorot(l.InitW), initB: l.InitB, pieces: l.pieces}, b)
	if err != nil {
		return nil, err
	}
	return made, l.finish.declare(l.Normalize, l.Dropout, made[0], b)
}

// Forward takes rows of nI and returns rows of nO.
func (l *Maxout) Forward(p *Pass, x Tensor) (Tensor, Backprop) { return l.forward(p, x, joint{}) }

func (l *Maxout) forward(p *Pass, x Tensor, j joint) (Tensor, Backprop) {
	z := l.affine.forward(p, x, false, j)
	y := Tensor{Shape: []int{z.Rows(), l.finish.width}, Data: p.Backend.Temp(z.Data.Len() / l.pieces), Lengths: z.Lengths}
	p.Backend.Maxout(y.Data, z.Data, l.pieces)
	y, back := l.finish.forward(p, y)
	return y, func(dy Tensor) Tensor {
		p.Backend.MaxoutGrad(z.Data, back(dy).Data, z.Data, l.pieces)
		return l.affine.backward(p, x, z.Data, j)
	}
}

var _ Layer = (*Maxout)(nil)
