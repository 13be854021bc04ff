package nn

// Conv2D convolves images with learned filters,
//
//	y[o,i,j] = b[o] + Σ W[o,c,u,v]·x[c, i*Stride+u-Padding, j*Stride+v-Padding]
//
// over c, u and v, with x = 0 outside the image; PyTorch's Conv2d with a square kernel. A
// row of input is (channels, height, width), or (height, width) for one channel. A row of
// output is (Out, height, width).
type Conv2D struct {
	// Out is the number of filters, and so of output channels.
	Out int
	// Size is the height and width of a filter.
	Size int
	// Stride is the distance between neighbouring windows; 0 means 1.
	Stride int
	// Padding is the number of zero rows and columns added on every side; it must be less
	// than Size.
	Padding int
	// InitW sets the initial W; nil means FanInUniform, PyTorch's default.
	InitW Initializer
	// InitB sets the initial b and is given the shape of W; nil means FanInUniform.
	InitB Initializer

	w, b   *Param
	window Window
	wantDX bool
}

// Init declares W (Out, channels, Size, Size) and b (Out).
func (l *Conv2D) Init(in, out []int, b *Builder) ([]int, error) {
	if l.w != nil {
		return nil, usedLayer(b)
	}
	if l.Out < 1 {
		return nil, b.errorf("Out must be at least 1, not %d", l.Out)
	}
	w, err := newWindow(in, l.Size, orOne(l.Stride), l.Padding, b)
	if err != nil {
		return nil, err
	}
	made, err := outShape([]int{l.Out, w.OutHeight(), w.OutWidth()}, out, b)
	if err != nil {
		return nil, err
	}
	l.window, l.wantDX = w, b.NeedsInputGradient()
	shape := []int{l.Out, w.Channels, w.Size, w.Size}
	l.w = b.Param("W", shape, orFanIn(l.InitW))
	l.b = b.Param("b", []int{l.Out}, orFanIn(l.InitB).forShape(shape))
	return made, nil
}

// Forward takes and returns rows of images.
func (l *Conv2D) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	rows := x.Rows()
	y := Tensor{
		Shape: []int{rows, l.Out, l.window.OutHeight(), l.window.OutWidth()}, Lengths: x.Lengths,
		Data: p.Backend.Temp(rows * l.Out * l.window.Plane()),
	}
	p.Backend.Conv2D(y.Data, x.Data, l.w.Values, l.b.Values, l.window)
	return y, func(dy Tensor) Tensor {
		p.Backend.Conv2DGrad(l.w.Grads, l.b.Grads, dy.Data, x.Data, l.window)
		p.final(l.w.Offset)
		if !l.wantDX {
			return Tensor{}
		}
		dx := Tensor{Shape: x.Shape, Data: p.Backend.Temp(x.Data.Len()), Lengths: x.Lengths}
		p.Backend.Conv2DInputGrad(dx.Data, dy.Data, l.w.Values, l.window)
		return dx
	}
}

var _ Layer = (*Conv2D)(nil)

// orOne returns n, or 1 if the user left it at 0.
func orOne(n int) int {
	if n == 0 {
		return 1
	}
	return n
}

func orFanIn(init Initializer) Initializer {
	if init == nil {
		return FanInUniform
	}
	return init
}
