package optim

import (
	"slices"

	"github.com/ringtrain/ringtrain/nn"
)

// A Part is what one Update covers: some whole parameters, a range of blocks of one
// parameter, or a parameter that is a piece of a larger one. A different worker may update
// each Part of a step.
type Part struct {
	params []*nn.Param
	lo, hi int       // elements of the only parameter; hi < 0 means all
	norms  nn.Buffer // of the parameter that the only one is a piece of; empty: compute them
}

// Whole returns the Part with every parameter.
func Whole(p *nn.Params) Part { return Part{params: p.List, hi: -1} }

// Only returns the Part with all of the given parameters.
func Only(params ...*nn.Param) Part { return Part{params: params, hi: -1} }

// BlocksOf returns blocks lo to hi, excluding hi, of one parameter. A block has
// nn.BlockSize elements; the last may be shorter. It is meant for workers that each
// update their own blocks of their own replica. Updating all blocks of one replica in
// turn gives the bits of a single update, unless L2 is part of the gradient and gradients
// are clipped: the norm then depends on values that change. Update panics if the
// parameter has fewer than lo blocks.
func BlocksOf(q *nn.Param, lo, hi int) Part {
	return Part{
		params: []*nn.Param{q},
		lo:     lo * nn.BlockSize,
		hi:     min(hi*nn.BlockSize, q.Values.Len()),
	}
}

// PieceOf returns the Part with all of q, which holds some blocks of a larger parameter that
// is elsewhere. Clipping uses norms, the block norms of the larger parameter in order; see
// [State.BlockNorms]. Updating all pieces gives the bits of a single update of the whole.
func PieceOf(q *nn.Param, norms nn.Buffer) Part {
	return Part{params: []*nn.Param{q}, hi: -1, norms: norms}
}

// whole reports whether the part covers every parameter of all.
func (p Part) whole(all *nn.Params) bool {
	return p.hi < 0 && p.norms.Len() == 0 && slices.Equal(p.params, all.List)
}

// span returns the elements of q that the part covers.
func (p Part) span(q *nn.Param) (lo, hi int) {
	if p.hi < 0 {
		return 0, q.Values.Len()
	}
	return p.lo, p.hi
}
