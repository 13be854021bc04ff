package main

import "github.com/ringtrain/ringtrain/nn"

// huber is half the squared error up to delta, and grows linearly beyond it. It is an
// nn.ValueLoss that needs existing methods of a Backend only, so it runs wherever the model
// does. nn.HuberError has a kernel of its own.
type huber struct{ delta float32 }

// OfValues implements nn.ValueLoss. With the error e, the gradient is d = e, limited to
// [-delta, delta], and the loss is d·(e - d/2).
func (h huber) OfValues(b nn.Backend, dy, loss, y, target nn.Buffer) {
	n := y.Len()
	if n == 0 {
		return
	}
	d, e, t := dy, b.Temp(n), b.Temp(n)
	if d.Len() == 0 {
		d = b.Temp(n)
	}
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
	b.Gemm(loss, d, t, 1, 1, n, false, false, 1)
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
