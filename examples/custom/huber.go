package main

import "github.com/ringtrain/ringtrain/nn"

// A loss compares predictions with targets, an element per row.
type loss interface {
	// add adds the loss of all rows to sum, and sets d to its gradient.
	add(b nn.Backend, sum, d, y, target nn.Buffer)
}

// huber is half the squared error up to delta, and grows linearly beyond it. It needs the
// methods of a Backend only, so it runs wherever the model does.
type huber struct{ delta float32 }

// add implements loss. With the error e, the gradient is d = e, limited to [-delta, delta],
// and the loss is d·(e - d/2).
func (h huber) add(b nn.Backend, sum, d, y, target nn.Buffer) {
	n := y.Len()
	e, t := b.Temp(n), b.Temp(n)
	b.Rescale(e, y, 1, 0)
	b.Axpy(e, -1, target)
	b.Rescale(d, e, 1, h.delta) // d = relu(e+delta) - relu(e-delta) - delta
	b.Relu(d, d)
	b.Rescale(t, e, 1, -h.delta)
	b.Relu(t, t)
	b.Axpy(d, -1, t)
	b.Rescale(d, d, 1, -h.delta)
	b.Rescale(t, d, -.5, 0)
	b.Axpy(t, 1, e)
	b.Gemm(sum, d, t, 1, 1, n, false, false, 1)
}

// addAbsolute adds the absolute errors of all rows to sum.
func addAbsolute(b nn.Backend, sum, y, target nn.Buffer) {
	e, t := b.Temp(y.Len()), b.Temp(y.Len())
	b.Rescale(e, y, 1, 0)
	b.Axpy(e, -1, target)
	b.Rescale(t, e, -1, 0)
	b.Relu(t, t)
	b.Relu(e, e)
	b.SumRows(sum, e)
	b.SumRows(sum, t)
}
