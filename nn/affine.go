package nn

import (
	"errors"
	"fmt"
	"slices"
)

// affine computes y = x·Wᵀ + b with W (nO, nI) and b (nO), for the layers with a matrix
// product. With pieces, W is (nO/pieces, pieces, nI) and b is (nO/pieces, pieces).
type affine struct {
	w, b   *Param
	nI, nO int
	wantDX bool
}

// affineSettings has the fields that the user may set in a layer with W and b.
type affineSettings struct {
	out          int         // number of outputs; 0 means that the model decides
	in           int         // number of inputs; 0 means any
	initW, initB Initializer // a nil initB means Zeros
	pieces       int         // results per output; 0 means 1, and a W of two dimensions
}

// declare fixes the dimensions and declares W and b. It returns the shape of the outputs,
// without pieces.
func (a *affine) declare(in, out []int, s affineSettings, b *Builder) ([]int, error) {
	if a.w != nil {
		return nil, usedLayer(b)
	}
	a.nI = product(in)
	if a.nI < 1 || len(in) == 0 {
		return nil, b.errorf("rows of input have shape %v; every dimension must be at least 1", in)
	}
	if err := insist(s.in, in, b); err != nil {
		return nil, err
	}
	nO, err := outputs(s.out, out)
	if err != nil {
		return nil, b.errorf("%v", err)
	}
	a.nO = nO * orOne(s.pieces)
	a.wantDX = b.NeedsInputGradient()
	if s.initB == nil {
		s.initB = Zeros
	}
	outs := []int{nO}
	if s.pieces > 0 {
		outs = append(outs, s.pieces)
	}
	shape := append(slices.Clone(outs), a.nI)
	a.w = b.Param("W", shape, s.initW)
	a.b = b.Param("b", outs, s.initB.forShape(shape))
	return []int{nO}, nil
}

// insist checks a width of rows of input that the user set; 0 means any.
func insist(want int, in []int, b *Builder) error {
	switch n := product(in); {
	case want < 0:
		return b.errorf("In must be at least 0, not %d", want)
	case want != 0 && want != n:
		return b.errorf("In is %d, but rows of input have shape %v, which is %d elements", want, in, n)
	}
	return nil
}

// usedLayer is the error for a second Init of a layer that keeps something of the first.
func usedLayer(b *Builder) error {
	return b.errorf("the layer already belongs to a model; make a new layer for each place")
}

// outputs decides the number of outputs from width, which the user set, and out, which
// the model asks for.
func outputs(width int, out []int) (int, error) {
	switch {
	case width < 0:
		return 0, fmt.Errorf("Out must be at least 0, not %d", width)
	case out == nil && width == 0:
		return 0, errors.New("Out is not set; set it, because only the last layer can infer it from the data")
	case out == nil:
		return width, nil
	case len(out) != 1 || out[0] < 1:
		return 0, fmt.Errorf("the model needs output rows of shape %v, but this layer returns rows of one dimension", out)
	case width != 0 && width != out[0]:
		return 0, fmt.Errorf("Out is %d but the model needs %d outputs", width, out[0])
	}
	return out[0], nil
}

// forward returns y, or relu(y), in temporary memory.
func (a *affine) forward(p *Pass, x Tensor, relu bool, j joint) Tensor {
	rows := x.Rows()
	y := Tensor{Shape: []int{rows, a.nO}, Data: p.Backend.Temp(rows * a.nO), Lengths: x.Lengths}
	if f, ok := p.Backend.(Fuser); ok {
		f.Affine(y.Data, x.Data, a.w.Values, a.b.Values, relu, j.leaves)
		return y
	}
	p.Backend.Gemm(y.Data, x.Data, a.w.Values, rows, a.nO, a.nI, false, true, 0)
	p.Backend.AddBias(y.Data, a.b.Values)
	if relu {
		p.Backend.Relu(y.Data, y.Data)
	}
	return y
}

// backward adds the gradients of W and b to their arenas and returns the gradient of x.
func (a *affine) backward(p *Pass, x Tensor, dy Buffer, j joint) Tensor {
	rows := x.Rows()
	f, fuses := p.Backend.(Fuser)
	if fuses {
		f.AffineGrad(a.w.Grads, a.b.Grads, dy, x.Data, p.Zeroed)
	} else {
		p.Backend.SumRows(a.b.Grads, dy)
		p.Backend.Gemm(a.w.Grads, dy, x.Data, a.nO, a.nI, rows, true, false, 1)
	}
	p.final(a.w.Offset)
	if !a.wantDX {
		return Tensor{}
	}
	dx := p.Backend.Temp(rows * a.nI)
	if fuses && j.takes {
		f.ReluInputGrad(dx, dy, a.w.Values, x.Data, rows)
		return Tensor{Shape: x.Shape, Data: dx, Lengths: x.Lengths}
	}
	p.Backend.Gemm(dx, dy, a.w.Values, rows, a.nI, a.nO, false, false, 0)
	return Tensor{Shape: x.Shape, Data: dx, Lengths: x.Lengths}
}

// orGlorot returns init, or Thinc's default for Linear, Relu and Maxout if it is nil.
func orGlorot(init Initializer) Initializer {
	if init == nil {
		return GlorotUniform
	}
	return init
}
