package nn

// LayerNorm normalises each row to mean 0 and variance 1, then scales it by G and shifts
// it by b; Thinc's LayerNorm.v1 (Ba, Kiros and Hinton, 2016). The variance is biased. A
// row with several dimensions is read as one vector; for sequences, use [EachPosition].
type LayerNorm struct {
	// Eps is added to the variance; 0 means Thinc's 1e-8. PyTorch's is 1e-5.
	Eps float32
	// In is the number of elements of a row to insist on; 0 means any.
	In int

	g, b   *Param
	eps    float32
	wantDX bool
}

const defaultLayerNormEps = 1e-8

// Init declares G and b, each with one element per element of a row.
func (l *LayerNorm) Init(in, out []int, b *Builder) ([]int, error) {
	if l.g != nil {
		return nil, usedLayer(b)
	}
	if len(in) == 0 || product(in) < 1 {
		return nil, b.errorf("rows of input have shape %v; every dimension must be at least 1", in)
	}
	if err := insist(l.In, in, b); err != nil {
		return nil, err
	}
	if !(l.Eps >= 0) {
		return nil, b.errorf("Eps must be at least 0, not %v", l.Eps)
	}
	if l.eps = l.Eps; l.eps == 0 {
		l.eps = defaultLayerNormEps
	}
	l.wantDX = b.NeedsInputGradient()
	width := []int{product(in)}
	l.g, l.b = b.Param("G", width, Ones), b.Param("b", width, Zeros)
	return outShape(in, out, b)
}

// Forward returns rows of the same shape as x.
func (l *LayerNorm) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	y := Tensor{Shape: x.Shape, Data: p.Backend.Temp(x.Data.Len()), Lengths: x.Lengths}
	moments := p.Backend.Temp(2 * x.Rows())
	p.Backend.LayerNorm(y.Data, moments, x.Data, l.g.Values, l.b.Values, l.eps)
	return y, func(dy Tensor) Tensor {
		p.Backend.LayerNormGrad(dy.Data, l.g.Grads, l.b.Grads, dy.Data, x.Data, moments, l.g.Values)
		p.final(l.g.Offset)
		if !l.wantDX {
			return Tensor{}
		}
		return Tensor{Shape: x.Shape, Data: dy.Data, Lengths: x.Lengths}
	}
}

var _ Layer = (*LayerNorm)(nil)
