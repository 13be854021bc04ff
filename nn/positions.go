package nn

// Positions adds a learned vector to each position of a row: the position embeddings of a
// transformer. A row has shape (T, width).
type Positions struct {
	// InitE sets the initial vectors; nil means Uniform(-0.1, 0.1), as for [Embed].
	InitE Initializer

	e      *Param
	wantDX bool
}

// Init declares E (T, width).
func (l *Positions) Init(in, out []int, b *Builder) ([]int, error) {
	if l.e != nil {
		return nil, usedLayer(b)
	}
	if err := positionsOf(in, b); err != nil {
		return nil, err
	}
	l.wantDX = b.NeedsInputGradient()
	l.e = b.Param("E", in, orUniform(l.InitE))
	return outShape(in, out, b)
}

// positionsOf checks that rows have the shape (T, width).
func positionsOf(in []int, b *Builder) error {
	if len(in) != 2 || product(in) < 1 {
		return b.errorf("rows of input have shape %v, but must be positions (T, width)", in)
	}
	return nil
}

// orUniform returns init, or Thinc's default for Embed if it is nil.
func orUniform(init Initializer) Initializer {
	if init == nil {
		return Uniform(-.1, .1)
	}
	return init
}

// Forward returns rows of the same shape as x.
func (l *Positions) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	y := Tensor{Shape: x.Shape, Data: p.Backend.Temp(x.Data.Len()), Lengths: x.Lengths}
	duplicate(p.Backend, y.Data, x.Data)
	p.Backend.AddBias(y.Data, l.e.Values)
	return y, func(dy Tensor) Tensor {
		p.Backend.SumRows(l.e.Grads, dy.Data)
		p.final(l.e.Offset)
		if !l.wantDX {
			return Tensor{}
		}
		return dy
	}
}

// duplicate sets y to x.
func duplicate(b Backend, y, x Buffer) {
	if n := x.Len(); n > 0 {
		b.Extract(y, x, n, 0, n)
	}
}

var _ Layer = (*Positions)(nil)
