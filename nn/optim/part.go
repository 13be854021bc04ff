package optim

import (
	"slices"

	"github.com/ringtrain/ringtrain/nn"
)

// A Part says what one Update covers: some whole parameters, or a range of
// blocks of one. Each Part of a step may be updated by another worker.
type Part struct {
	params []*nn.Param
	lo, hi int // elements of the only parameter; hi < 0: all
}

// Whole is every parameter.
func Whole(p *nn.Params) Part { return Part{params: p.List, hi: -1} }

// Only is the given parameters, all of each.
func Only(params ...*nn.Param) Part { return Part{params: params, hi: -1} }

// BlocksOf is blocks lo to hi, hi not included, of nn.BlockSize elements of one
// parameter; the last block may be shorter. It is for workers that each update
// their own blocks of their own replica: to update all blocks of one replica in
// turn gives the bits of one update, unless L2 is part of the gradient and
// gradients are clipped, because then the norm depends on values. Like slicing
// it panics at Update if the parameter has fewer than lo blocks.
func BlocksOf(q *nn.Param, lo, hi int) Part {
	return Part{
		params: []*nn.Param{q},
		lo:     lo * nn.BlockSize,
		hi:     min(hi*nn.BlockSize, q.Values.Len()),
	}
}

// whole reports whether the part is every parameter of p.
func (p Part) whole(all *nn.Params) bool { return p.hi < 0 && slices.Equal(p.params, all.List) }

// span returns the elements of q that the part covers.
func (p Part) span(q *nn.Param) (lo, hi int) {
	if p.hi < 0 {
		return 0, q.Values.Len()
	}
	return p.lo, p.hi
}
