package ner

import "github.com/ringtrain/ringtrain/nn"

// A span of moves: a state to begin in, and the token to stop at.
type chunk struct {
	state
	stop int
}

// chop appends the states in which a document is learned from, one every n tokens. Those after
// the first have followed the oracle so far, so that a long document is not learned only as
// a continuation of mistakes. Parts without gold tags are left out.
func (m *Moves) chop(to []chunk, d *document, n int) []chunk {
	costs := make([]uint8, m.Len())
	s := start(len(d.gold))
	for !s.final() {
		c := chunk{s, min(s.next+n, s.end)}
		if d.annotated(s.next, c.stop) {
			to = append(to, c)
		}
		for s.next < c.stop {
			m.apply(&s, m.oracle(costs, m.costs(costs, &s, d)))
		}
	}
	return to
}

// chopLength returns the length of the parts of documents in a step: uniform from cut/2 to
// 2*cut, as in spaCy, and the same on all ranks.
func chopLength(cut int, layer uint32, r nn.Stream) int {
	lo := max(cut/2, 1)
	r.First, r.Stride = 0, 1
	u := float64(r.Draw(layer, 0, 0)[0]>>8) * 0x1p-24
	return lo + int(u*float64(2*cut-lo))
}
