package nn

type residual struct {
	layer  Layer
	wantDX bool
}

// Residual is y = x + layer(x), Thinc's residual.v1 (He et al., "Deep Residual Learning",
// 2015). The layer must keep the shape of its rows. Its parameters are in the scope
// "layers.0".
func Residual(layer Layer) Layer { return &residual{layer: layer} }

// Init checks that the layer keeps the shape.
func (l *residual) Init(in, out []int, b *Builder) ([]int, error) {
	l.wantDX = b.NeedsInputGradient()
	scope := b.element(0)
	scope.mixed = true
	made, err := scope.place(l.layer, in, in)
	if err != nil {
		return nil, err
	}
	if !sameShape(made, in) {
		return nil, b.errorf("a residual adds rows of shape %v to the layer's rows of shape %v; they must be equal", in, made)
	}
	return outShape(in, out, b)
}

// Forward adds into new memory, because the layer may still need its result.
func (l *residual) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	inner, back := l.layer.Forward(p, x)
	y := Tensor{Shape: x.Shape, Data: p.Backend.Temp(x.Data.Len()), Lengths: x.Lengths}
	p.Backend.Add(y.Data, inner.Data, x.Data)
	return y, func(dy Tensor) Tensor {
		if !l.wantDX {
			back(dy)
			return Tensor{}
		}
		direct := p.Backend.Temp(dy.Data.Len()) // the layer may overwrite dy
		duplicate(p.Backend, direct, dy.Data)
		dx := back(dy)
		if dx.empty() { // the layer begins with the model's own input, whose gradient nothing needs
			return Tensor{Shape: x.Shape, Data: direct, Lengths: x.Lengths}
		}
		p.Backend.Add(direct, dx.Data, direct)
		if !dx.Data.sameStart(dy.Data) { // dy is the caller's to release
			p.release(dx.Data)
		}
		return Tensor{Shape: x.Shape, Data: direct, Lengths: x.Lengths}
	}
}
