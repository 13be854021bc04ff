package ner

import "github.com/ringtrain/ringtrain/nn"

// A reader reads documents: it scores the moves of states on the host, and makes the best of
// those that are possible. Everything but the scores of a state has been computed for the
// whole batch.
type reader struct {
	*network
	moves  *Moves
	values values
	random *nn.Stream // of dropout; nil for none

	sums   []float32 // of a state
	scores []float32
	costs  []uint8
}

// values are the parameters and the products of a batch, on the host.
type values struct {
	products       []float32 // (tokens of the batch, tokens of a state, width, pieces)
	bias, pad      []float32
	upper, upShift []float32

	spare [5]mirror
}

func newReader(n *network, m *Moves) *reader {
	return &reader{network: n, moves: m, sums: make([]float32, n.wide()), scores: make([]float32, n.moves), costs: make([]uint8, n.moves)}
}

// load waits for the products and the parameters.
func (r *reader) load(b nn.Backend, products nn.Buffer) {
	v := &r.values
	v.products = v.spare[0].read(b, products)
	v.bias = v.spare[1].read(b, r.b.Values)
	v.pad = v.spare[2].read(b, r.pad.Values)
	if !r.Direct {
		v.upper = v.spare[3].read(b, r.upW.Values)
		v.upShift = v.spare[4].read(b, r.upB.Values)
	}
}

// A part is a chunk of a document of a batch.
type part struct {
	chunk
	*document
	row   int // of the document in the batch
	first int // the document's first token, as a row of all tokens of the batch
}

// read makes the moves of a part, from row of the tape on, and returns the loss of its states. It
// overwrites a single row if keep is false. found may be nil.
func (r *reader) read(p part, t *tape, row int, keep bool, found func(entity)) (loss float64) {
	s, tokens := p.state, r.Features.Tokens()
	for s.next < p.stop {
		ids := t.tokens[row*tokens:][:tokens]
		units := t.units.host[row*r.width:][:r.width]
		pieces := t.pieces[row*r.width:][:r.width]
		r.Features.of(&s, ids)
		for i := range ids {
			if ids[i] >= 0 {
				ids[i] += int32(p.first)
			}
		}
		r.add(ids)
		r.largest(units, pieces)
		if r.random != nil && !r.Direct {
			r.drop(units, pieces, p.row, s.next)
		}
		scores := r.score(units)
		least := r.moves.costs(r.costs, &s, p.document)
		loss += logLoss(t.dscores.host[row*r.network.moves:][:r.network.moves], scores, r.costs, least)
		if e, ended := r.moves.apply(&s, mostLikely(scores, r.costs)); ended && found != nil {
			found(e)
		}
		if keep {
			row++
		}
	}
	return loss
}

// add sets sums to those of a state.
func (r *reader) add(ids []int32) {
	sums := r.sums
	copy(sums, r.values.bias)
	for f, id := range ids {
		from := r.values.pad[f*len(sums):]
		if id >= 0 {
			from = r.values.products[(int(id)*len(ids)+f)*len(sums):]
		}
		from = from[:len(sums)] // once, not for each element
		for i := range sums {
			sums[i] += from[i]
		}
	}
}

// largest sets units to the largest of their pieces.
func (r *reader) largest(units []float32, pieces []uint8) {
	n := r.Pieces
	if n == 1 {
		for i, x := range r.sums {
			units[i], pieces[i] = x, 0
			if x <= 0 {
				units[i], pieces[i] = 0, dropped
			}
		}
		return
	}
	for i := range units {
		from := r.sums[i*n:][:n]
		best, at := from[0], uint8(0)
		for k, x := range from[1:] {
			if x > best {
				best, at = x, uint8(k+1)
			}
		}
		units[i], pieces[i] = best, at
	}
}

// kept scales the units that dropout keeps.
const kept = float32(1 / (1 - dropRate))

// drop drops units of the state at a token of a document. Each token has one state, so the
// mask depends neither on the parts of the document nor on the rank that has it.
func (r *reader) drop(units []float32, pieces []uint8, row, token int) {
	blocks := (len(units) + 3) / 4
	for b := range blocks {
		words := r.random.Draw(r.dropper, row, token*blocks+b)
		for i := 4 * b; i < min(4*b+4, len(units)); i++ {
			if float32(words[i%4]>>8)*0x1p-24 >= dropRate {
				units[i] *= kept
			} else {
				units[i], pieces[i] = 0, dropped
			}
		}
	}
}

// score returns the scores of all moves.
func (r *reader) score(units []float32) []float32 {
	if r.Direct {
		return units
	}
	for m := range r.scores {
		weights := r.values.upper[m*len(units):][:len(units)]
		var a, b, c, d float32
		i := 0
		for ; i+4 <= len(units); i += 4 { // four sums hide the latency of additions
			a += float32(units[i] * weights[i])
			b += float32(units[i+1] * weights[i+1])
			c += float32(units[i+2] * weights[i+2])
			d += float32(units[i+3] * weights[i+3])
		}
		for ; i < len(units); i++ {
			a += float32(units[i] * weights[i])
		}
		r.scores[m] = (a + b) + (c + d) + r.values.upShift[m]
	}
	return r.scores
}
