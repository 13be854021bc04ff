package paramserver

import (
	"slices"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// Buckets returns the lengths of buckets of at least this many bytes, in the order in which
// they leave. Buckets are larger if otherwise some servers would wait while others receive:
// one leaves after the other, and together they may take 1/4 longer than in one piece.
func Buckets(p *nn.Params, servers, bytes int) []int {
	for ; ; bytes *= 2 {
		lens := trainer.Buckets(p, bytes)
		if len(lens) == 1 || even(Shares(p, servers, lens)) {
			return lens
		}
	}
}

// even reports whether the largest parts of all buckets are together little more than the
// largest share.
func even(buckets [][]int) bool {
	held, largest := make([]int, len(buckets[0])), 0
	for _, part := range buckets {
		largest += slices.Max(part)
		for i, n := range part {
			held[i] += n
		}
	}
	return 4*largest <= 5*slices.Max(held)
}

// Shares returns how many elements of each bucket each of the servers holds, by bucket, if the
// optimizer can update pieces of a parameter. buckets are the lengths of all buckets.
func Shares(p *nn.Params, servers int, buckets []int) [][]int {
	l := layoutOf(p, nil).inBuckets(buckets)
	var shares [][]int
	for _, r := range routesOf(l, split(l.Parameters, servers, true)) {
		held := make([]int, servers)
		for i := range held {
			held[i] = r.elements(i)
		}
		shares = append(shares, held)
	}
	return shares
}
