package trainer

import (
	"slices"

	"github.com/ringtrain/ringtrain/nn"
)

// DefaultBucket is the least number of bytes of gradients that leave together.
const DefaultBucket = 1 << 20

// cuts is where buckets of at least so many bytes begin, from the last one, in
// the order in which a backward pass completes them. A bucket is whole
// parameters; the last of them, at 0, has what is left. Ranks have the same
// parameters, so they cut alike, whatever their models report and when.
func cuts(p *nn.Params, bytes int) []int {
	var at []int
	end := p.Grads.Len()
	for _, q := range slices.Backward(p.List) {
		if q.Offset > 0 && 4*(end-q.Offset) >= bytes {
			at, end = append(at, q.Offset), q.Offset
		}
	}
	return append(at, 0)
}

// Buckets is how many gradients leave together, in the order in which they
// leave, where several ranks exchange them in buckets of at least so many bytes.
func Buckets(p *nn.Params, bytes int) []int {
	var lens []int
	hi := p.Grads.Len()
	for _, lo := range cuts(p, bytes) {
		lens, hi = append(lens, hi-lo), lo
	}
	return lens
}
