package nn

// MaxPool2D takes the largest element of each window of each plane, like PyTorch's
// MaxPool2d with a square kernel. Padding never wins, and the first of several equal
// elements receives the gradient. A row of input is (channels, height, width), or
// (height, width) for one channel.
type MaxPool2D struct {
	// Size is the height and width of a window.
	Size int
	// Stride is the distance between neighbouring windows; 0 means Size.
	Stride int
	// Padding is the number of rows and columns by which windows may start outside the
	// image; it must be less than Size.
	Padding int

	window Window
	wantDX bool
}

// Init declares no parameters.
func (l *MaxPool2D) Init(in, out []int, b *Builder) ([]int, error) {
	if l.window.Size != 0 {
		return nil, usedLayer(b)
	}
	stride := l.Stride
	if stride == 0 {
		stride = max(1, l.Size)
	}
	w, err := newWindow(in, l.Size, stride, l.Padding, b)
	if err != nil {
		return nil, err
	}
	l.window, l.wantDX = w, b.NeedsInputGradient()
	return outShape([]int{w.Channels, w.OutHeight(), w.OutWidth()}, out, b)
}

// Forward takes and returns rows of images.
func (l *MaxPool2D) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	w := l.window
	rows := x.Rows()
	y := Tensor{
		Shape: []int{rows, w.Channels, w.OutHeight(), w.OutWidth()}, Lengths: x.Lengths,
		Data: p.Backend.Temp(rows * w.Channels * w.Plane()),
	}
	p.Backend.MaxPool(y.Data, x.Data, w)
	return y, func(dy Tensor) Tensor {
		if !l.wantDX {
			return Tensor{}
		}
		dx := Tensor{Shape: x.Shape, Data: p.Backend.Temp(x.Data.Len()), Lengths: x.Lengths}
		p.Backend.MaxPoolGrad(dx.Data, dy.Data, x.Data, y.Data, w)
		return dx
	}
}

var _ Layer = (*MaxPool2D)(nil)
