package trainer

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// A deviceFinite finds gradients in device memory that are not finite. The device
// computes the squared norm of each block, so the arena need not be copied.
type deviceFinite struct {
	backend nn.Backend
	grads   nn.Buffer // the arena
	hyper   nn.Buffer // zeroes: no L2 regularisation
	norms   nn.Buffer
	found   []float32
	queued  []span // whose norms are queued, in order
	used    int    // norms queued
}

// A span is a range of an arena's elements.
type span struct{ lo, hi int }

// newDeviceFinite makes a deviceFinite for an arena. parts is the greatest number of
// calls of queue before a call of notFinite.
func newDeviceFinite(b nn.Backend, grads nn.Buffer, parts int) *deviceFinite {
	norms := nn.Blocks(grads.Len()) + parts
	return &deviceFinite{backend: b, grads: grads, hyper: b.Alloc(nn.HyperLen), norms: b.Alloc(norms), found: make([]float32, norms)}
}

// queue queues the norms of elements lo to hi.
func (d *deviceFinite) queue(lo, hi int) {
	v, n := d.grads.Slice(lo, hi), nn.Blocks(hi-lo)
	d.backend.SquaredNorm(d.norms.Slice(d.used, d.used+n), v, v, d.hyper)
	d.used += n
	d.queued = append(d.queued, span{lo, hi})
}

// suspects waits for the norms queued since the last call and returns the blocks
// whose norm is not finite: an element is not finite, or the squares overflow.
func (d *deviceFinite) suspects() (blocks []span) {
	found := d.found[:d.used]
	d.backend.Read(found, d.norms.Slice(0, d.used))
	for _, part := range d.queued {
		for lo := part.lo; lo < part.hi; lo += nn.BlockSize {
			if x := float64(found[0]); math.IsNaN(x) || math.IsInf(x, 0) {
				blocks = append(blocks, span{lo, min(lo+nn.BlockSize, part.hi)})
			}
			found = found[1:]
		}
	}
	d.queued, d.used = d.queued[:0], 0
	return blocks
}

// notFinite is the function of that name for all elements queued since the last call. It
// copies the arena only if a norm is not finite.
func (d *deviceFinite) notFinite(params *nn.Params) (bad int64) {
	blocks := d.suspects()
	if blocks == nil {
		return 0
	}
	grads := hostCopy(d.backend, d.grads)
	for _, b := range blocks {
		bad = max(bad, notFiniteIn(grads, params, b.lo, b.hi))
	}
	return bad
}
