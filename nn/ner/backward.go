package ner

import "github.com/ringtrain/ringtrain/nn"

// multiply returns the products of reduced token vectors x with every matrix of the lower
// layer.
func (n *network) multiply(b nn.Backend, x nn.Tensor) nn.Buffer {
	y := b.Temp(x.Rows() * n.products())
	b.Gemm(y, x.Data, n.w.Values, x.Rows(), n.products(), n.inner, false, true, 0)
	return y
}

// backward adds the gradients of the parameters and returns that of x. units and dscores are
// results of learn, and r has read them.
func (n *network) backward(p *nn.Pass, x nn.Tensor, units, dscores nn.Buffer, r reader) nn.Tensor {
	b := p.Backend
	var before nn.Buffer
	if n.LastForMissing { // the gradient of pad is that of missing tokens
		before = b.Temp(n.pad.Grads.Len())
		b.Zero(before)
		b.Axpy(before, 1, n.pad.Grads)
		b.Zero(n.pad.Grads)
	}
	dy := r.spread(p, n.backwardUpper(p, units, dscores))
	b.Gemm(n.w.Grads, dy, x.Data, n.products(), n.inner, x.Rows(), true, false, beta(p))
	if n.LastForMissing {
		last := x.Data.Slice((x.Rows()-1)*n.inner, x.Rows()*n.inner)
		b.Gemm(n.w.Grads, n.pad.Grads, last, n.products(), n.inner, 1, false, false, 1)
		b.Axpy(n.pad.Grads, 1, before)
	}
	if p.Final != nil {
		p.Final(n.w.Offset)
	}
	dx := b.Temp(x.Rows() * n.inner)
	b.Gemm(dx, dy, n.w.Values, x.Rows(), n.inner, n.products(), false, false, 0)
	return nn.Tensor{Shape: x.Shape, Data: dx, Lengths: x.Lengths}
}

// backwardUpper adds the gradients of the upper layer and returns those of the units, before
// dropout. It overwrites the units.
func (n *network) backwardUpper(p *nn.Pass, units, dscores nn.Buffer) nn.Buffer {
	if n.Direct {
		return dscores
	}
	b, rows := p.Backend, dscores.Len()/n.moves
	b.Gemm(n.upW.Grads, dscores, units, n.moves, n.width, rows, true, false, beta(p))
	b.SumRows(n.upB.Grads, dscores)
	b.Gemm(units, dscores, n.upW.Values, rows, n.width, n.moves, false, false, 0)
	if n.drops(p) {
		b.Scale(units, n.kept())
	}
	return units
}

// beta is what a product does with the gradients before it: keep them, unless they are 0.
func beta(p *nn.Pass) float32 {
	if p.Zeroed {
		return 0
	}
	return 1
}
