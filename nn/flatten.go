package nn

// Flatten reads each row as one vector, without moving data; PyTorch's Flatten. Layers with
// weights do so themselves, so it is needed only where a shape of one dimension is asked
// for, as by Concatenate.
type Flatten struct{}

// Init declares no parameters.
func (l *Flatten) Init(in, out []int, b *Builder) ([]int, error) {
	if product(in) < 1 {
		return nil, b.errorf("rows of input have shape %v; every dimension must be at least 1", in)
	}
	return outShape([]int{product(in)}, out, b)
}

// Forward returns x with the shape of vectors.
func (l *Flatten) Forward(_ *Pass, x Tensor) (Tensor, Backprop) {
	y := Tensor{Shape: []int{x.Rows(), product(x.Shape[1:])}, Data: x.Data, Lengths: x.Lengths}
	return y, func(dy Tensor) Tensor { return Tensor{Shape: x.Shape, Data: dy.Data, Lengths: x.Lengths} }
}

var _ Layer = (*Flatten)(nil)
