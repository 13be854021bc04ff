package ner

import (
	"slices"

	"github.com/ringtrain/ringtrain/nn"
)

// A tape holds what the states of a batch computed on the host, for the backward pass. Each state
// has a row.
type tape struct {
	tokens  []int32   // the features, as rows of the batch; -1 for none; [rows][tokens]
	pieces  []uint8   // the largest piece of each unit, or dropped; [rows][width]
	units   nn.Buffer // after dropout; [rows][width]
	dscores nn.Buffer // gradients of the scores; [rows][moves]
}

// dropped stands for a unit that passes no gradient on.
const dropped = 0xFF

// grow makes room for a number of rows, in temporary memory of b.
func (t *tape) grow(b nn.Backend, n *network, rows int) {
	t.tokens = room(t.tokens, rows*n.Features.Tokens())
	t.pieces = room(t.pieces, rows*n.width)
	t.units = b.Temp(rows * n.width)
	t.dscores = b.Temp(rows * n.moves)
}

// room returns n elements, in the memory of v if it has that many.
func room[T any](v []T, n int) []T { return slices.Grow(v[:0], n)[:n] }
