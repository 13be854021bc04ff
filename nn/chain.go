package nn

type chain struct{ layers []Layer }

// Chain returns the composition of layers, applied in order; Thinc's chain.v1. The
// parameters of layer i are in the scope "layers.i"; chains can be nested. Only the last
// layer is told the output shape.
func Chain(layers ...Layer) Layer { return &chain{layers: layers} }

// Init runs Init of each layer with the output shape of the layer before it.
func (c *chain) Init(in, out []int, b *Builder) ([]int, error) {
	if len(c.layers) == 0 {
		return nil, b.errorf("there are no layers in it; add at least one")
	}
	shape := in
	for i, l := range c.layers {
		var want []int
		if i == len(c.layers)-1 {
			want = out
		}
		scope := b.element(i)
		scope.inner = b.inner || i > 0
		scope.mixed = b.mixed || i < len(c.layers)-1
		var err error
		if shape, err = scope.place(l, shape, want); err != nil {
			return nil, err
		}
	}
	return shape, nil
}

// Forward runs the layers in order and their Backprops in reverse.
func (c *chain) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	backs := make([]Backprop, len(c.layers))
	var j joint
	for i, l := range c.layers {
		w, ok := l.(weighted)
		if !ok {
			x, backs[i] = l.Forward(p, x)
			continue
		}
		j = joint{takes: j.leaves, leaves: i+1 < len(c.layers) && joins(p, l, c.layers[i+1])}
		x, backs[i] = w.forward(p, x, j)
	}
	return x, func(dy Tensor) Tensor {
		d := dy
		for i := len(backs) - 1; i >= 0 && !d.empty(); i-- {
			dx := backs[i](d)
			if !d.Data.sameStart(dx.Data) && !d.Data.sameStart(dy.Data) { // dy is the caller's to release
				p.release(d.Data)
			}
			d = dx
		}
		return d
	}
}

// last returns the layer that computes the output of l, and its scope. b is the scope of l.
func last(l Layer, b *Builder) (Layer, *Builder) {
	for {
		at := 0
		switch c := l.(type) {
		case *chain:
			if at = len(c.layers) - 1; at < 0 {
				return l, b
			}
			l = c.layers[at]
		case *eachPosition:
			l = c.layer
		default:
			return l, b
		}
		b = b.element(at)
	}
}
