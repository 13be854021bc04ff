package kernels

import "github.com/ringtrain/ringtrain/nn"

// TransitionShape is the part of the struct Transitions of the kernels with the shape of a parser.
type TransitionShape struct{ Features, Tokens, Width, Pieces, Labels int32 }

// Transitions is the struct Transitions of the kernels: an nn.TransitionBatch with addresses in
// device memory.
type Transitions struct {
	Parts, Documents, Tags                uintptr
	Products, Pad, Bias, Upper, UpperBias uintptr
	Random                                uintptr // a Random; 0 for no dropout
	FeatureTokens, Largest                uintptr
	Units, DScores, Moves, Totals         uintptr

	Shape TransitionShape
	Layer uint32
	Least uint32 // LeastBits of the dropout's rate
	Scale float32
}

// NewTransitions converts t to the kernels' struct. reads returns the address of a Buffer that
// kernels only read, and writes that of one that they may change.
func NewTransitions(t nn.TransitionBatch, random uintptr, reads, writes func(nn.Buffer) uintptr) Transitions {
	return Transitions{
		Parts: reads(t.Parts), Documents: reads(t.Documents), Tags: reads(t.Tags),
		Products: reads(t.Products), Pad: reads(t.Pad), Bias: reads(t.Bias), Upper: reads(t.Upper), UpperBias: reads(t.UpperBias),
		Random:        random,
		FeatureTokens: writes(t.FeatureTokens), Largest: writes(t.Largest),
		Units: writes(t.Units), DScores: writes(t.DScores), Moves: writes(t.Moves), Totals: writes(t.Totals),
		Shape: TransitionShape{int32(t.Features), int32(t.Tokens), int32(t.Width), int32(t.Pieces), int32(t.Labels)},
		Layer: t.Layer, Least: LeastBits(t.Rate), Scale: 1 / (1 - t.Rate),
	}
}
