package nn

import (
	"math"
)

// Images reinterprets each row of input as an image (Channels, Height, Width) without
// moving data, so that image layers accept plain rows. Rows that already have that shape
// are unchanged.
type Images struct {
	// Channels is the number of planes; 0 means 1.
	Channels int
	// Height and Width are the size of a plane. If both are 0, planes are square and
	// their size follows from the length of a row.
	Height, Width int

	shape []int
}

// Init declares no parameters.
func (l *Images) Init(in, out []int, b *Builder) ([]int, error) {
	if l.shape != nil {
		return nil, usedLayer(b)
	}
	shape := []int{orOne(l.Channels), l.Height, l.Width}
	n := product(in)
	if l.Height == 0 && l.Width == 0 && shape[0] > 0 {
		side := int(math.Sqrt(float64(n / shape[0])))
		shape[1], shape[2] = side, side
	}
	if min(shape[0], shape[1], shape[2]) < 1 || product(shape) != n {
		return nil, b.errorf("cannot read rows of shape %v as images of shape %v; set Channels, Height and Width to match", in, shape)
	}
	l.shape = shape
	return outShape(shape, out, b)
}

// Forward returns x with the shape of images.
func (l *Images) Forward(_ *Pass, x Tensor) (Tensor, Backprop) {
	y := Tensor{Shape: append([]int{x.Rows()}, l.shape...), Data: x.Data, Lengths: x.Lengths}
	return y, func(dy Tensor) Tensor { return Tensor{Shape: x.Shape, Data: dy.Data, Lengths: x.Lengths} }
}

var _ Layer = (*Images)(nil)
