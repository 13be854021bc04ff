package trainer

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// A probe looks for numbers that are not finite in an arena of device memory,
// without copying it: the squared norms of its blocks tell.
type probe struct {
	backend nn.Backend
	grads   nn.Buffer // the arena
	hyper   nn.Buffer // zeroes: no L2 regularisation
	norms   nn.Buffer
	found   []float32
	looked  []span // at which the norms are, in their order
	used    int    // norms
}

// A span is elements of an arena.
type span struct{ lo, hi int }

// newProbe makes a probe of an arena that is looked at in at most so many parts.
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

// suspects waits for the norms since the last call and returns the blocks in which
// an element is not finite, or squares do not add up.
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

// notFinite is that of package trainer, of all that was looked at. The arena is
// copied only if something is suspect.
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
