package trainer

import (
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// DefaultBucket is the minimum number of bytes in a bucket where links do not matter; see
// ChooseBucket.
const DefaultBucket = 1 << 20

// leastBucket is the smallest bucket that ChooseBucket returns. Latency decides how long a
// smaller one takes (schedule.SmallBytes).
const leastBucket = 64 << 10

// tolerable is the part of the exchange in one piece by which buckets may lengthen it.
// An exchange that no backward pass hides takes that much longer at most.
const tolerable = 1. / 8

// ChooseBucket returns the minimum number of bytes in a bucket for gradients that a group
// sums: the smallest power of two with which, as the group's links predict, all buckets
// together take little longer than one piece. More of the exchange is then hidden behind
// the backward pass than with larger buckets. All ranks get the same.
//
// It returns DefaultBucket for gradients in device memory, under AnyOrder, and if all ranks
// are on one host, where the exchange needs cores that the backward pass needs too. It also
// does so for compressed gradients. The bits of some forms depend on the buckets, and 16-bit
// gradients are sent straight to the ranks that sum them: in small buckets, 982,194 of them
// took 16 workers at 100 Mbit/s 1.3 times as long.
func ChooseBucket(g *collective.Group, p *nn.Params, c Compression) int {
	s, width := g.Situation(), collective.Float32.Size()
	if s.OneHost() || s.Any || c.Form != Exact || onDevice(p.Grads) {
		return DefaultBucket
	}
	return SmallestBucket(p, func(n int) time.Duration { return s.Predict(s.Plan(n, width, true), n, width) })
}

// SmallestBucket is ChooseBucket for links over which the sum of n gradients takes that long.
func SmallestBucket(p *nn.Params, takes func(n int) time.Duration) int {
	whole := takes(p.Grads.Len())
	for bytes := leastBucket; ; bytes *= 2 {
		lens := Buckets(p, bytes)
		var sum time.Duration
		for _, n := range lens {
			sum += takes(n)
		}
		if len(lens) == 1 || float64(sum-whole) <= tolerable*float64(whole) {
			return bytes
		}
	}
}

// cuts returns where buckets of at least this many bytes begin, in the order in which
// a backward pass completes them: from the end. A bucket holds whole parameters. The
// last one, at 0, holds the rest and may be smaller. Cuts depend only on the
// parameters, so all ranks have the same.
func cuts(p *nn.Params, bytes int) []int {
	at, _ := cutsAround(p, bytes, func(*nn.Param) bool { return false })
	return at
}

// cutsAround is cuts, but every parameter that is apart has a bucket of its own. alone says
// which buckets these are.
func cutsAround(p *nn.Params, bytes int, apart func(*nn.Param) bool) (at []int, alone []bool) {
	end, after := p.Grads.Len(), p.Grads.Len()
	cut := func(lo int, one bool) { at, alone, end = append(at, lo), append(alone, one), lo }
	for _, q := range slices.Backward(p.List) {
		one := apart(q)
		if one && after < end {
			cut(after, false)
		}
		if one || q.Offset > 0 && 4*(end-q.Offset) >= bytes {
			cut(q.Offset, one)
		}
		after = q.Offset
	}
	if end > 0 || at == nil {
		cut(0, false)
	}
	return at, alone
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
