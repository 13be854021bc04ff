package gpu

import (
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/kernels"
	"github.com/ringtrain/ringtrain/nn"
)

var _ nn.Transitioner = (*Backend)(nil)

// Transitions implements nn.Transitioner in one kernel. Its sums have the bits of nn/ner, and its
// exponentials and logarithms may differ in the last bit.
func (b *Backend) Transitions(t nn.TransitionBatch) {
	parts, states := rows("Transitions", t.Parts, nn.TransitionPartLen), t.Moves.Len()
	need("Transitions", t.Tokens > 0 && t.Width > 0 && t.Pieces > 0 && t.Pieces <= mostPieces && t.Labels > 0)
	need("Transitions", t.Products.Len() == t.Tags.Len()*t.Tokens*t.Wide() && t.Pad.Len() == t.Tokens*t.Wide() && t.Bias.Len() == t.Wide())
	need("Transitions", t.Upper.Len() == 0 && t.Width == t.Scores() || t.Upper.Len() == t.Width*t.UpperBias.Len() && t.UpperBias.Len() == t.Scores())
	need("Transitions", t.Units.Len() == states*t.Width && t.DScores.Len() == states*t.Scores() && t.Totals.Len() == 2*parts)
	need("Transitions", t.FeatureTokens.Len() == 0 && t.Largest.Len() == 0 || t.FeatureTokens.Len() == states*t.Tokens && t.Largest.Len() == states*t.Width)
	b.launch("transitions", parts, b.transitions(t))
}

// mostPieces is the number of sums that a thread of the kernel holds.
const mostPieces = 4

// transitions returns t as a kernel argument.
func (b *Backend) transitions(t nn.TransitionBatch) cuda.Arg {
	var random cuda.Ptr
	if t.Rate > 0 {
		random = b.draws(t.Random)
	}
	return cuda.Struct(kernels.NewTransitions(t, uintptr(random),
		func(v nn.Buffer) uintptr { return uintptr(b.address(v)) }, func(v nn.Buffer) uintptr { return uintptr(b.ptr(v)) }))
}

// TransitionsGrad implements nn.Transitioner. dproducts has the bits of nn/ner.
func (b *Backend) TransitionsGrad(dproducts, dpad, dbias, dunits nn.Buffer, t nn.TransitionBatch) {
	documents := t.Documents.Len() - 1
	need("TransitionsGrad", documents > 0 && dproducts.Len() == t.Products.Len() && dpad.Len() == t.Pad.Len() && dbias.Len() == t.Bias.Len() && dunits.Len() == t.Units.Len())
	need("TransitionsGrad", t.FeatureTokens.Len() == t.Moves.Len()*t.Tokens && t.Largest.Len() == dunits.Len())
	pads, biases := b.Temp(documents*t.Pad.Len()), b.Temp(documents*t.Bias.Len())
	b.Zero(dproducts)
	b.launch("transitions_grad", pads.Len(), b.at(dproducts), b.at(pads), b.at(biases), b.reads(dunits), count(pads.Len()), b.transitions(t))
	b.SumRows(dpad, pads)
	b.SumRows(dbias, biases)
}
