package ner

import (
	"fmt"
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// Settings are those of spaCy's TransitionBasedParser.v2.
type Settings struct {
	Features Features // extra_state_tokens
	Hidden   int      // hidden_width: units between token vectors and scores
	Pieces   int      // maxout_pieces of each unit; a single piece is a Relu, as in spaCy
	// Direct lets the units be the scores themselves: use_upper = false. Hidden is then only
	// the width to which token vectors are reduced.
	Direct bool
	// Cut is update_with_oracle_cut_size: in training, documents are cut into parts of about
	// this many tokens. 0 means DefaultCut.
	Cut int
	// Drop is the fraction of units dropped in training, in [0, 1). Direct units are never
	// dropped.
	Drop float32
	// LastForMissing takes the last token of a batch for tokens that a state lacks, in the
	// gradient of the lower layer's matrix. spaCy does, by an index of -1. The gradient then
	// depends on which documents share a batch, so several ranks differ from one.
	LastForMissing bool
}

// DefaultCut is spaCy's default of Settings.Cut.
const DefaultCut = 100

// DefaultDrop is Settings.Drop of spaCy, whatever its training.dropout says.
const DefaultDrop = .1

// A network scores the moves of a state. The vectors of its tokens go through one
// matrix each, and are added before maxout. The products do not depend on the state, so
// they are made once for all tokens of a batch.
type network struct {
	Settings
	moves   int
	width   int // units
	inner   int // inputs of a unit: width of the reduced token vectors
	linear  nn.Linear
	w, b    *nn.Param // lower: (tokens, width, pieces, inner) and (width, pieces)
	pad     *nn.Param // in place of a missing token: (1, tokens, width, pieces)
	upW     *nn.Param // upper: (moves, width) and (moves); nil if Direct
	upB     *nn.Param
	dropper uint32 // layer number of the dropout
	chopper uint32 // and of the length of parts
}

// init declares the parameters, after those of an encoder of token vectors of width in.
func (n *network) init(in, moves int, b *nn.Builder) error {
	if n.Hidden < 1 || n.Pieces < 1 || n.Pieces > MostPieces || n.Cut < 0 || n.Features > SixTokens || !(n.Drop >= 0 && n.Drop < 1) {
		return &nn.LayerError{Path: b.Path(), Msg: fmt.Sprintf("the parser needs a hidden width of at least 1, from 1 to %d maxout pieces, a dropout in [0, 1) and a known set of features, got %+v", MostPieces, n.Settings)}
	}
	n.inner = n.Hidden
	n.moves, n.width = moves, n.Hidden
	if n.Direct {
		n.width = moves
	}
	if n.Cut == 0 {
		n.Cut = DefaultCut
	}
	n.linear.Out = n.Hidden
	if _, err := n.linear.Init([]int{in}, nil, b.Scope("linear")); err != nil {
		return err
	}
	lower, upper := b.Scope("lower"), b.Scope("upper")
	tokens := n.Features.Tokens()
	unit := newUnit(n.Pieces)
	n.w = lower.Param("W", []int{tokens, n.width, n.Pieces, n.inner}, nn.Normal(float32(unit.scale/math.Sqrt(float64(tokens*n.inner)))))
	n.b = lower.Param("b", []int{n.width, n.Pieces}, nn.Uniform(float32(unit.shift), float32(unit.shift)))
	n.pad = lower.Param("pad", []int{1, tokens, n.width, n.Pieces}, nn.Normal(1))
	if !n.Direct {
		n.upW = upper.Param("W", []int{moves, n.width}, nn.Zeros)
		n.upB = upper.Param("b", []int{moves}, nn.Zeros)
	}
	n.dropper, n.chopper = b.Random(), b.Random()
	b.Scope("lower").OnHost() // it describes the parts of each batch
	return nil
}

// wide is the number of sums of a state, and tokens times that the products of a token.
func (n *network) wide() int     { return n.width * n.Pieces }
func (n *network) products() int { return n.Features.Tokens() * n.wide() }

// drops reports whether units are dropped in a pass.
func (n *network) drops(p *nn.Pass) bool { return p.Train && n.Drop > 0 && !n.Direct }

// kept scales the units that dropout keeps, as in nn.Dropout.
func (n *network) kept() float32 { return 1 / (1 - n.Drop) }

// A unit says what makes the largest of some normal numbers have mean 0 and variance 1:
// their standard deviation and what to add to each.
type unit struct{ scale, shift float64 }

// MostPieces is the number of units in the table of newUnit.
const MostPieces = 4

// newUnit returns the unit of a number of pieces. spaCy finds scale and shift by trial:
// layer-sequential unit variance (Mishkin and Matas, ICLR 2016) on random token vectors.
// For normal vectors they follow from the mean and the variance of the largest of n
// standard normal numbers (Relu of one number, for n = 1).
func newUnit(pieces int) unit {
	moments := [MostPieces]struct{ mean, variance float64 }{
		{1 / math.Sqrt(2*math.Pi), .5 - .5/math.Pi},
		{1 / math.Sqrt(math.Pi), 1 - 1/math.Pi},
		{1.5 / math.Sqrt(math.Pi), 1 + math.Sqrt(3)/(2*math.Pi) - 2.25/math.Pi},
		{1.0293753730, .4917152369}, // Teichroew, 1956
	}[pieces-1]
	scale := 1 / math.Sqrt(moments.variance)
	if pieces == 1 { // shifting the input of a Relu would change its variance
		return unit{scale: scale}
	}
	return unit{scale, -scale * moments.mean}
}
