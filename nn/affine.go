package nn

import (
	"errors"
	"fmt"
)

// affine is y = x·Wᵀ + b with W (nO, nI) and b (nO), the part that Linear, Relu
// and Softmax share.
type affine struct {
	w, b   *Param
	nI, nO int
	wantDX bool
}

// declare sets dimensions and declares W and b. width is the number of outputs
// that the user set, 0 for none; then out decides. A nil initB is Zeros.
func (a *affine) declare(in, out []int, width int, initW, initB Initializer, b *Builder) ([]int, error) {
	if a.w != nil {
		return nil, usedLayer(b)
	}
	a.nI = product(in)
	if a.nI < 1 || len(in) == 0 {
		return nil, fmt.Errorf("nn: %s: rows of input have shape %v; every dimension must be at least 1", b.Path(), in)
	}
	nO, err := outputs(width, out)
	if err != nil {
		return nil, fmt.Errorf("nn: %s: %w", b.Path(), err)
	}
	a.nO = nO
	a.wantDX = b.NeedsInputGradient()
	if initB == nil {
		initB = Zeros
	}
	shape := []int{a.nO, a.nI}
	a.w = b.Param("W", shape, initW)
	a.b = b.Param("b", []int{a.nO}, initB.forShape(shape))
	return []int{a.nO}, nil
}

// usedLayer is the error of a layer with parameters whose Init is called twice.
func usedLayer(b *Builder) error {
	return fmt.Errorf("nn: the layer at %s already belongs to a model; make a new one for each place", b.Path())
}

// outputs settles the number of outputs between the user and the model.
func outputs(width int, out []int) (int, error) {
	switch {
	case width < 0:
		return 0, fmt.Errorf("Out is %d, must not be negative", width)
	case out == nil && width == 0:
		return 0, errors.New("Out is not set and cannot be inferred; only the last layer can learn it from the data")
	case out == nil:
		return width, nil
	case len(out) != 1 || out[0] < 1:
		return 0, fmt.Errorf("the model wants rows of output of shape %v, the layer makes rows of one dimension", out)
	case width != 0 && width != out[0]:
		return 0, fmt.Errorf("Out is %d but the model wants %d outputs", width, out[0])
	}
	return out[0], nil
}

// forward returns y, or relu of it, in temporary memory.
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

// backward adds the gradients of W and b and returns that of x.
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

// orGlorot returns the initializer a user set, or thinc's default for Linear
// and Relu.
func orGlorot(init Initializer) Initializer {
	if init == nil {
		return GlorotUniform
	}
	return init
}
