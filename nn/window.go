package nn

// A Window slides a square of Size by Size over the planes of an image, in steps of
// Stride. A row of input is (Channels, Height, Width), with Padding rows and columns
// added on every side. Output (i, j) covers the square that starts at
// (i*Stride-Padding, j*Stride-Padding). Rows and columns at the end that do not fill a
// whole square are ignored.
type Window struct {
	Channels, Height, Width int // of one row of input
	Size, Stride, Padding   int
}

// OutHeight returns the number of rows of an output plane.
func (w Window) OutHeight() int { return (w.Height+2*w.Padding-w.Size)/w.Stride + 1 }

// OutWidth returns the number of columns of an output plane.
func (w Window) OutWidth() int { return (w.Width+2*w.Padding-w.Size)/w.Stride + 1 }

// In returns the number of elements in a row of input.
func (w Window) In() int { return w.Channels * w.Height * w.Width }

// Plane returns the number of elements in an output plane.
func (w Window) Plane() int { return w.OutHeight() * w.OutWidth() }

// newWindow checks a layer's settings against the shape of its input. A row with two
// dimensions is an image with one channel.
func newWindow(in []int, size, stride, padding int, b *Builder) (Window, error) {
	if len(in) == 2 {
		in = []int{1, in[0], in[1]}
	}
	if len(in) != 3 || product(in) < 1 {
		return Window{}, b.errorf("rows of input have shape %v, but must be images (channels, height, width); use nn.Images to convert plain rows", in)
	}
	w := Window{Channels: in[0], Height: in[1], Width: in[2], Size: size, Stride: stride, Padding: padding}
	switch {
	case size < 1:
		return w, b.errorf("Size must be at least 1, not %d", size)
	case stride < 1:
		return w, b.errorf("Stride must be at least 1, not %d", stride)
	case padding < 0 || padding >= size:
		return w, b.errorf("Padding must be at least 0 and less than Size (%d), not %d", size, padding)
	case w.Height+2*padding < size || w.Width+2*padding < size:
		return w, b.errorf("a window of %d by %d does not fit into images of %d by %d with padding %d", size, size, w.Height, w.Width, padding)
	}
	return w, nil
}

// outShape checks the shape of a layer's output rows against the shape its model needs;
// nil means any shape.
func outShape(made, want []int, b *Builder) ([]int, error) {
	if want != nil && !sameShape(made, want) {
		return nil, b.errorf("the layer returns rows of shape %v, but the model needs %v", made, want)
	}
	return made, nil
}
