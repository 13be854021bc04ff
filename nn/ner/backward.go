package ner

import "github.com/ringtrain/ringtrain/nn"

// gradients is memory on the host for backward.
type gradients struct{ products, pad, bias mirror }

// multiply returns the products of reduced token vectors x with every matrix of the lower
// layer.
func (n *network) multiply(b nn.Backend, x nn.Tensor) nn.Buffer {
	y := b.Temp(x.Rows() * n.products())
	b.Gemm(y, x.Data, n.w.Values, x.Rows(), n.products(), n.inner, false, true, 0)
	return y
}

// backward adds the gradients of the parameters and returns that of x. The tape has rows
// states.
func (n *network) backward(p *nn.Pass, x nn.Tensor, t *tape, rows int, g *gradients) nn.Tensor {
	b := p.Backend
	dunits := n.backwardUpper(p, t, rows)
	tokens, wide := n.Features.Tokens(), n.wide()
	dproducts := g.products.temp(b, x.Rows()*n.products())
	dpad, dbias := g.pad.temp(b, tokens*wide), g.bias.temp(b, wide)
	clear(dproducts.host)
	clear(dpad.host)
	clear(dbias.host)
	for row := range rows {
		pieces := t.pieces[row*n.width:][:n.width]
		n.scatter(dbias.host, dunits[row*n.width:], pieces)
		for f, id := range t.tokens[row*tokens:][:tokens] {
			to := dpad.host[f*wide:]
			if id >= 0 {
				to = dproducts.host[(int(id)*tokens+f)*wide:]
			}
			n.scatter(to, dunits[row*n.width:], pieces)
		}
	}
	b.Axpy(n.b.Grads, 1, dbias.store(b))
	b.Axpy(n.pad.Grads, 1, dpad.store(b))
	dy := dproducts.store(b)
	b.Gemm(n.w.Grads, dy, x.Data, n.products(), n.inner, x.Rows(), true, false, beta(p))
	if p.Final != nil {
		p.Final(n.w.Offset)
	}
	dx := b.Temp(x.Rows() * n.inner)
	b.Gemm(dx, dy, n.w.Values, x.Rows(), n.inner, n.products(), false, false, 0)
	return nn.Tensor{Shape: x.Shape, Data: dx, Lengths: x.Lengths}
}

// backwardUpper adds the gradients of the upper layer and returns those of the units, before
// dropout, on the host. It overwrites the units of the tape.
func (n *network) backwardUpper(p *nn.Pass, t *tape, rows int) []float32 {
	if n.Direct {
		return t.dscores.host
	}
	b := p.Backend
	dscores, units := t.dscores.store(b), t.units.store(b)
	b.Gemm(n.upW.Grads, dscores, units, n.moves, n.width, rows, true, false, beta(p))
	b.SumRows(n.upB.Grads, dscores)
	b.Gemm(units, dscores, n.upW.Values, rows, n.width, n.moves, false, false, 0)
	if p.Train {
		b.Scale(units, kept)
	}
	return t.spare.units.read(b, units)
}

// scatter adds the gradients of units to those of their largest pieces.
func (n *network) scatter(to, dunits []float32, pieces []uint8) {
	for i, piece := range pieces {
		if piece != dropped {
			to[i*n.Pieces+int(piece)] += dunits[i]
		}
	}
}

// beta is what a product does with the gradients before it: keep them, unless they are 0.
func beta(p *nn.Pass) float32 {
	if p.Zeroed {
		return 0
	}
	return 1
}
