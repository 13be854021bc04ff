package collectivetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// TestLending makes long calls of all operations but AllReduce, on memory from allocate. Every
// rank gives at least least bytes. It overwrites what it has given as soon as the call returns.
func TestLending(t *testing.T, make Maker, allocate Allocator, least int) {
	sizes := []int{2, 3, 5}
	switch {
	case least > 1<<20: // slow, and only two ranks read each other's memory
		sizes = []int{2}
	case raced:
		sizes = []int{3}
	}
	for _, size := range sizes {
		t.Run(fmt.Sprintf("size %d", size), func(t *testing.T) {
			groups := make(t, size)
			each := least/4 + 1001
			ranks := lenders{each: each}
			for r := range size {
				ranks.src = append(ranks.src, floats(t, allocate(t, r, 4*size*each)))
				ranks.dst = append(ranks.dst, floats(t, allocate(t, r, 4*size*each)))
			}
			for root := range size {
				Run(t, groups, func(ctx context.Context, g *collective.Group) {
					ranks.call(t, ctx, g, root)
				})
			}
		})
	}
}

func floats(t *testing.T, b []byte) []float32 {
	v, err := collective.OfBytes(b, collective.Float32)
	require.NoError(t, err)
	return collective.Elements[float32](v)
}

// lenders have two vectors of size pieces for each rank.
type lenders struct {
	each     int
	src, dst [][]float32 // by rank
}

// call makes all calls on a rank.
func (l *lenders) call(t *testing.T, ctx context.Context, g *collective.Group, root int) {
	self, size, each := g.Rank(), g.Size(), l.each
	src, dst := l.src[self][:size*each], l.dst[self][:size*each]
	piece := func(s []float32, r int) []float32 { return s[r*each : (r+1)*each] }
	operands := func(n int) [][]float32 {
		var all [][]float32
		for r := range size {
			all = append(all, Operands[float32](r, n))
		}
		return all
	}
	one, all := operands(each), operands(size*each)
	for k, c := range []struct {
		name      string
		give, got []float32 // the parts of src and dst
		mine      []float32 // what give is before the call
		call      func(give, got collective.Vector) error
		want      []float32 // nil: got does not matter
	}{
		{"AllGather", piece(src, 0), dst, one[self], func(give, got collective.Vector) error { return g.AllGather(ctx, got, give) }, slices.Concat(one...)},
		{"AllGather in place", piece(dst, self), dst, one[self], func(give, got collective.Vector) error { return g.AllGather(ctx, got, give) }, slices.Concat(one...)},
		{"AllToAll", src, dst, all[self], func(give, got collective.Vector) error { return g.AllToAll(ctx, got, give) }, l.pieces(all, self)},
		{"Broadcast", piece(dst, 0), piece(dst, 0), one[self], func(_, got collective.Vector) error { return g.Broadcast(ctx, got, root) }, one[root]},
		{"Gather", piece(src, 0), dst, one[self], func(give, got collective.Vector) error { return g.Gather(ctx, got, give, root) }, only(self == root, slices.Concat(one...))},
		{"Scatter", src, piece(dst, 0), all[self], func(give, got collective.Vector) error { return g.Scatter(ctx, got, give, root) }, piece(all[root], self)},
		{"ReduceScatter", src, piece(dst, 0), all[self], func(give, got collective.Vector) error { return g.ReduceScatter(ctx, got, give, collective.Sum) }, piece(Reduced[float32](size, size*each, 0, collective.Sum), self)},
		{"ReduceScatter in place", src, piece(src, self), all[self], func(give, got collective.Vector) error { return g.ReduceScatter(ctx, got, give, collective.Sum) }, piece(Reduced[float32](size, size*each, 0, collective.Sum), self)},
		{"Reduce", piece(src, 0), piece(dst, 0), one[self], func(give, got collective.Vector) error { return g.Reduce(ctx, got, give, collective.Sum, root) }, only(self == root, Reduced[float32](size, each, 0, collective.Sum))},
	} {
		for range 2 { // leaves other bytes where ranks show what they give
			assert.NoError(t, collective.AllReduce(ctx, g, []float32{1}, collective.Sum))
		}
		if self == (k+root)%size { // the others call first
			for range 1000 {
				runtime.Gosched()
			}
		}
		copy(c.give, c.mine)
		what := fmt.Sprintf("%s on rank %d of %d, root %d", c.name, self, size, root)
		if !assert.NoError(t, c.call(collective.Of(c.give), collective.Of(c.got)), what) {
			return
		}
		if c.want != nil {
			assert.True(t, slices.Equal(c.want, c.got), "wrong result: %s", what)
		}
		for i := range c.give { // it is this rank's again
			c.give[i] = -1
		}
	}
}

// pieces returns the pieces of a rank, in the order of the ranks that have them.
func (l *lenders) pieces(all [][]float32, rank int) []float32 {
	var got []float32
	for _, s := range all {
		got = append(got, s[rank*l.each:(rank+1)*l.each]...)
	}
	return got
}

// only returns s if the condition holds.
func only(condition bool, s []float32) []float32 {
	if condition {
		return s
	}
	return nil
}
