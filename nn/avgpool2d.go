package nn

// AvgPool2D takes the mean of each window of each plane, like PyTorch's AvgPool2d with a
// square kernel: padding counts as zeros. A row of input is (channels, height, width), or
// (height, width) for one channel.
type AvgPool2D struct {
	// Size is the height and width of a window; 0 means the whole image, which must then
	// be square.
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
func (l *AvgPool2D) Init(in, out []int, b *Builder) ([]int, error) {
	if l.window.Size != 0 {
		return nil, usedLayer(b)
	}
	size := l.Size
	if size == 0 && len(in) >= 2 {
		size = in[len(in)-1]
		if in[len(in)-2] != size {
			return nil, b.errorf("Size is not set, so the window is the whole image, but rows of shape %v are not square; set Size", in)
		}
	}
	stride := l.Stride
	if stride == 0 {
		stride = max(1, size)
	}
	w, err := newWindow(in, size, stride, l.Padding, b)
	if err != nil {
		return nil, err
	}
	l.window, l.wantDX = w, b.NeedsInputGradient()
	return outShape([]int{w.Channels, w.OutHeight(), w.OutWidth()}, out, b)
}

// Forward takes and returns rows of images.
func (l *AvgPool2D) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	w := l.window
	rows := x.Rows()
	y := Tensor{
		Shape: []int{rows, w.Channels, w.OutHeight(), w.OutWidth()}, Lengths: x.Lengths,
		Data: p.Backend.Temp(rows * w.Channels * w.Plane()),
	}
	p.Backend.AvgPool(y.Data, x.Data, w)
	return y, func(dy Tensor) Tensor {
		if !l.wantDX {
			return Tensor{}
		}
		dx := Tensor{Shape: x.Shape, Data: p.Backend.Temp(x.Data.Len()), Lengths: x.Lengths}
		p.Backend.AvgPoolGrad(dx.Data, dy.Data, w)
		return dx
	}
}

var _ Layer = (*AvgPool2D)(nil)
