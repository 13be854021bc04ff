package nn

type eachPosition struct {
	layer     Layer
	positions int
}

// EachPosition applies one layer to every position of a row; Thinc's with_array.v1. The
// first dimension of a row is its positions: rows of (T, width) become rows of (T, nO)
// where the layer maps (width) to (nO). The layer may be a Chain. Its parameters are in the
// scope "layers.0".
//
// Layers with weights read a row of any shape as one vector, which is right for images.
// What a row means is therefore the business of this layer, and no other layer has an
// option for it. Linear, Relu, Gelu, Maxout, LayerNorm and Softmax need EachPosition on
// sequences; Embed, Positions and SelfAttention do not.
func EachPosition(layer Layer) Layer { return &eachPosition{layer: layer} }

// Init splits the first dimension off and puts it back.
func (l *eachPosition) Init(in, out []int, b *Builder) ([]int, error) {
	if l.positions != 0 {
		return nil, usedLayer(b)
	}
	if len(in) < 2 || in[0] < 1 {
		return nil, b.errorf("rows of input have shape %v, but EachPosition needs positions and at least one more dimension", in)
	}
	var want []int
	if out != nil {
		if len(out) < 2 || out[0] != in[0] {
			return nil, b.errorf("EachPosition keeps the %d positions of rows of shape %v, but the model needs rows of shape %v", in[0], in, out)
		}
		want = out[1:]
	}
	made, err := b.element(0).place(l.layer, in[1:], want)
	if err != nil {
		return nil, err
	}
	l.positions = in[0]
	return append([]int{in[0]}, made...), nil
}

// Forward gives the layer a Pass that knows how many of its rows are one row.
func (l *eachPosition) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	inner := *p
	inner.positions = p.perRow() * l.positions
	y, back := l.layer.Forward(&inner, l.split(x))
	return l.join(y), func(dy Tensor) Tensor {
		dx := back(l.split(dy))
		if dx.empty() {
			return dx
		}
		return l.join(dx)
	}
}

// split makes each position a row.
func (l *eachPosition) split(x Tensor) Tensor {
	return Tensor{Shape: append([]int{x.Shape[0] * x.Shape[1]}, x.Shape[2:]...), Data: x.Data}
}

// join is the inverse of split.
func (l *eachPosition) join(y Tensor) Tensor {
	return Tensor{Shape: append([]int{y.Shape[0] / l.positions, l.positions}, y.Shape[1:]...), Data: y.Data}
}
