package trainer

import (
	"slices"

	"github.com/ringtrain/ringtrain/nn"
)

// DefaultBucket is the default of the least number of bytes in a bucket.
const DefaultBucket = 1 << 20

// cuts returns where buckets of at least this many bytes begin, in the order in which
// a backward pass completes them: from the end. A bucket holds whole parameters. The
// last one, at 0, holds the rest and may be smaller. Cuts depend only on the
// parameters, so all ranks have the same.
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

// Buckets returns the lengths of buckets of at least this many bytes, in the order in
// which they leave.
func Buckets(p *nn.Params, bytes int) []int { return lengths(cuts(p, bytes), p.Grads.Len()) }

// lengths returns the lengths of the buckets that begin at cuts, of n gradients.
func lengths(cuts []int, n int) []int {
	var lens []int
	for _, lo := range cuts {
		lens, n = append(lens, n-lo), lo
	}
	return lens
}
