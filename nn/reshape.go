package nn

// Reshape reads each row as an array of another shape, without moving data; PyTorch's
// Unflatten. It makes positions of plain rows, such as the rows of an image.
type Reshape struct {
	// Shape is that of a row of output. It has as many elements as a row of input.
	Shape []int
}

// Init declares no parameters.
func (l *Reshape) Init(in, out []int, b *Builder) ([]int, error) {
	for _, d := range l.Shape {
		if d < 1 {
			return nil, b.errorf("Shape is %v; every dimension must be at least 1", l.Shape)
		}
	}
	if len(l.Shape) == 0 || grown(0, l.Shape) != product(in) {
		return nil, b.errorf("rows of input have shape %v, which is %d elements; Shape is %v, and must have as many", in, product(in), l.Shape)
	}
	return outShape(l.Shape, out, b)
}

// Forward returns x with the new shape.
func (l *Reshape) Forward(_ *Pass, x Tensor) (Tensor, Backprop) {
	y := Tensor{Shape: append([]int{x.Rows()}, l.Shape...), Data: x.Data, Lengths: x.Lengths}
	return y, func(dy Tensor) Tensor { return Tensor{Shape: x.Shape, Data: dy.Data, Lengths: x.Lengths} }
}

var _ Layer = (*Reshape)(nil)
