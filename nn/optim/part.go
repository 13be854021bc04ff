package optim

import (
	"slices"

	"github.com/ringtrain/ringtrain/nn"
)

// A Part is what one Update covers: some whole parameters, or a parameter that is a piece of
// a larger one. A different worker may update each Part of a step.
type Part struct {
	params []*nn.Param
	norms  nn.Buffer // of the parameter that the only one is a piece of; empty: compute them
}

// Whole returns the Part with every parameter.
func Whole(p *nn.Params) Part { return Part{params: p.List} }

// Only returns the Part with all of the given parameters.
func Only(params ...*nn.Param) Part { return Part{params: params} }

// PieceOf returns the Part with all of q, which holds some blocks of a larger parameter that
// is elsewhere. Clipping uses norms, the block norms of the larger parameter in order; see
// [State.BlockNorms]. Updating all pieces gives the bits of a single update of the whole.
func PieceOf(q *nn.Param, norms nn.Buffer) Part {
	return Part{params: []*nn.Param{q}, norms: norms}
}

// whole reports whether the part covers every parameter of all.
func (p Part) whole(all *nn.Params) bool {
	return p.norms.Len() == 0 && slices.Equal(p.params, all.List)
}
