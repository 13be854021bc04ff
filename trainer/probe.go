package trainer

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// A probe finds numbers that are not finite in an arena of device memory without
// copying it: the device computes the squared norm of each block.
type probe struct {
	backend nn.Backend
	grads   nn.Buffer // the arena
	hyper   nn.Buffer // zeroes: no L2 regularisation
	norms   nn.Buffer
	found   []float32
	looked  []span // whose norms are queued, in order
	used    int    // norms queued
}

// A span is a range of an arena's elements.
type span struct{ lo, hi int }

// newProbe makes a probe for an arena that is looked at in at most this many parts.
func newProbe(b nn.Backend, grads nn.Buffer, parts int) *probe {
	norms := nn.Blocks(grads.Len()) + parts
	return &probe{backend: b, grads: grads, hyper: b.Alloc(nn.HyperLen), norms: b.Alloc(norms), found: make([]float32, norms)}
}

// look queues the norms of elements lo to hi.
func (p *probe) look(lo, hi int) {
	v, n := p.grads.Slice(lo, hi), nn.Blocks(hi-lo)
	p.backend.SquaredNorm(p.norms.Slice(p.used, p.used+n), v, v, p.hyper)
	p.used += n
	p.looked = append(p.looked, span{lo, hi})
}

// suspects waits for the norms queued since the last call and returns the blocks
// whose norm is not finite: an element is not finite, or the squares overflow.
func (p *probe) suspects() (blocks []span) {
	found := p.found[:p.used]
	p.backend.Read(found, p.norms.Slice(0, p.used))
	for _, part := range p.looked {
		for lo := part.lo; lo < part.hi; lo += nn.BlockSize {
			if x := float64(found[0]); math.IsNaN(x) || math.IsInf(x, 0) {
				blocks = append(blocks, span{lo, min(lo+nn.BlockSize, part.hi)})
			}
			found = found[1:]
		}
	}
	p.looked, p.used = p.looked[:0], 0
	return blocks
}

// notFinite is the function of that name for everything looked at since the last
// call. It copies the arena only if a block is suspect.
func (p *probe) notFinite(params *nn.Params) (bad int64) {
	blocks := p.suspects()
	if blocks == nil {
		return 0
	}
	grads := hostCopy(p.backend, p.grads)
	for _, b := range blocks {
		bad = max(bad, notFiniteIn(grads, params, b.lo, b.hi))
	}
	return bad
}
