package cpu

import "github.com/ringtrain/ringtrain/nn"

var _ nn.ArenaUpdate = (*Backend)(nil)

// AdamArena implements nn.ArenaUpdate. It reads the gradients of a parameter twice, first for
// the norm, and everything else once.
func (b *Backend) AdamArena(p *nn.Params, g nn.Gradients, m, v, average, norms, hyper nn.Buffer) {
	all := operands{p.Values.Float32s(), g.Arena.Float32s(), m.Float32s(), v.Float32s(), average.Float32s()}
	eachTrained(p, all, g.Scale, norms, hyper, func(o operands, t *terms) { adam(t, o, g.Clear) })
}

// SGDArena implements nn.ArenaUpdate, like AdamArena.
func (b *Backend) SGDArena(p *nn.Params, g nn.Gradients, average, norms, hyper nn.Buffer) {
	all := operands{w: p.Values.Float32s(), g: g.Arena.Float32s(), average: average.Float32s()}
	eachTrained(p, all, g.Scale, norms, hyper, func(o operands, t *terms) { sgd(t, o, g.Clear) })
}

// eachTrained calls update with the operands and terms of each parameter that is trained.
func eachTrained(p *nn.Params, all operands, scale float32, norms, hyper nn.Buffer, update func(o operands, t *terms)) {
	h, sums := hyper.Float32s(), norms.Float32s()
	for _, q := range p.List {
		n := q.Values.Len()
		own := sums[:nn.Blocks(n)]
		sums = sums[len(own):]
		if q.Momentum > 0 {
			continue
		}
		o := all.slice(q.Offset, q.Offset+n)
		if h[nn.HyperClip] > 0 {
			squaredNorm(own, o.g, o.w, scale, h[nn.HyperL2])
		}
		t := newTerms(h, scale, own)
		update(o, &t)
	}
}

// Follow implements nn.ArenaUpdate.
func (b *Backend) Follow(value, average, mean nn.Buffer, momentum float32) {
	b.Scale(value, 1-momentum)
	b.Axpy(value, momentum, mean)
	copy(average.Float32s(), value.Float32s())
}
