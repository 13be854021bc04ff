package nn

// finish is what Relu, Gelu and Maxout do after their activation: LayerNorm, if the user
// wants that, and dropout.
type finish struct {
	norm  *LayerNorm // nil for none
	drop  dropper
	width int
}

// declare declares the parameters of LayerNorm in the scope "norm" and checks the rate.
func (f *finish) declare(normalize bool, rate float32, width int, b *Builder) error {
	f.width = width
	if normalize {
		f.norm = &LayerNorm{}
		if _, err := f.norm.Init([]int{width}, nil, b.Scope("norm")); err != nil {
			return err
		}
	}
	return f.drop.declare(rate, b)
}

// forward may overwrite y.
func (f *finish) forward(p *Pass, y Tensor) (Tensor, Backprop) {
	back := func(dy Tensor) Tensor { return dy }
	if f.norm != nil {
		y, back = f.norm.Forward(p, y)
	}
	if !f.drop.active(p) {
		return y, back
	}
	f.drop.apply(p, y.Data, y.Data, f.width)
	return y, func(dy Tensor) Tensor {
		f.drop.apply(p, dy.Data, dy.Data, f.width)
		return back(dy)
	}
}
