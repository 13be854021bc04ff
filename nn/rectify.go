package nn

// Rectify is y = max(0, x): the activation of [Relu] without its weights. NaN stays NaN.
type Rectify struct{}

// Init declares no parameters and returns in.
func (l *Rectify) Init(in, out []int, b *Builder) ([]int, error) { return outShape(in, out, b) }

// Forward returns rows of the same shape as x.
func (l *Rectify) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	y := Tensor{Shape: x.Shape, Data: p.Backend.Temp(x.Data.Len()), Lengths: x.Lengths}
	p.Backend.Relu(y.Data, x.Data)
	return y, func(dy Tensor) Tensor {
		p.Backend.ReluGrad(dy.Data, dy.Data, y.Data, 1)
		return dy
	}
}

var _ Layer = (*Rectify)(nil)
