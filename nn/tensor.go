package nn

import "slices"

// A Tensor is a Buffer viewed as rows: Shape[0] rows, each of shape Shape[1:],
// row-major without gaps.
type Tensor struct {
	Shape []int
	Data  Buffer
	// Lengths is the number of rows in each document if the rows are the tokens of
	// several documents concatenated; nil for plain rows. A layer whose output has the rows
	// of its input passes it on, in both directions.
	Lengths []int
}

// Rows returns the number of rows; 0 for the zero Tensor.
func (t Tensor) Rows() int {
	if len(t.Shape) == 0 {
		return 0
	}
	return t.Shape[0]
}

// empty reports whether t is the zero Tensor, which means "not computed"
// (see [Backprop]).
func (t Tensor) empty() bool { return t.Shape == nil }

// product returns the number of elements in a shape; 1 for no dimensions.
func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// sameShape reports whether a and b have the same dimensions.
func sameShape(a, b []int) bool { return slices.Equal(a, b) }
