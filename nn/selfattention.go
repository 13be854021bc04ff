package nn

// SelfAttention is multi-head attention of a row's positions to each other, with a product
// before it for queries, keys and values and one after it; PyTorch's MultiheadAttention
// without dropout (Vaswani et al., "Attention Is All You Need", 2017). Rows have shape
// (T, width), and so have results.
type SelfAttention struct {
	// Heads is the number of heads; it must divide the width. 0 means 1.
	Heads int
	// Causal hides from each position those after it.
	Causal bool
	// InitW sets the initial weights; nil means GlorotUniform.
	InitW Initializer
	// InitB sets the initial biases and is given the shape of W; nil means Zeros.
	InitB Initializer

	qkv, out affine
	heads    Heads
}

// Init declares qkv.W (3·width, width) and qkv.b (3·width), whose outputs are all queries,
// all keys and all values, each of them head by head; and out.W (width, width) and out.b
// (width).
func (l *SelfAttention) Init(in, out []int, b *Builder) ([]int, error) {
	if err := positionsOf(in, b); err != nil {
		return nil, err
	}
	if b.plans.causal && !l.Causal {
		return nil, b.errorf("each position sees those after it, which the model is to predict; set causal to true")
	}
	width, heads := in[1], orOne(l.Heads)
	if heads < 1 || width%heads != 0 {
		return nil, b.errorf("Heads must be at least 1 and divide the width, not %d; rows of shape %v have width %d", l.Heads, in, width)
	}
	l.heads = Heads{Positions: in[0], Heads: heads, Width: width / heads, Causal: l.Causal}
	one, s := []int{width}, affineSettings{out: 3 * width, initW: orGlorot(l.InitW), initB: l.InitB}
	if _, err := l.qkv.declare(one, nil, s, b.Scope("qkv")); err != nil {
		return nil, err
	}
	s.out = width
	if _, err := l.out.declare(one, nil, s, b.Scope("out")); err != nil {
		return nil, err
	}
	return outShape(in, out, b)
}

// Forward returns rows of the same shape as x.
func (l *SelfAttention) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	rows, width := x.Rows(), l.out.nI
	each := Tensor{Shape: []int{rows * l.heads.Positions, width}, Data: x.Data}
	qkv := l.qkv.forward(p, each, false, joint{})
	mixed, weights := each, p.Backend.Temp(l.heads.Weights(rows))
	mixed.Data = p.Backend.Temp(x.Data.Len())
	p.Backend.Attention(mixed.Data, weights, qkv.Data, l.heads)
	y := l.out.forward(p, mixed, false, joint{})
	return Tensor{Shape: x.Shape, Data: y.Data, Lengths: x.Lengths}, func(dy Tensor) Tensor {
		d := l.out.backward(p, mixed, dy.Data, joint{})
		dqkv := p.Backend.Temp(qkv.Data.Len())
		p.Backend.AttentionGrad(dqkv, d.Data, weights, qkv.Data, l.heads)
		for _, done := range []Buffer{d.Data, mixed.Data, weights, qkv.Data} {
			p.release(done)
		}
		dx := l.qkv.backward(p, each, dqkv, joint{})
		p.release(dqkv)
		if dx.empty() {
			return dx
		}
		return Tensor{Shape: x.Shape, Data: dx.Data, Lengths: x.Lengths}
	}
}

var _ Layer = (*SelfAttention)(nil)
