package ner

import "github.com/ringtrain/ringtrain/nn"

// A hostReader is the reader of a backend in host memory. It is the specification of
// nn.Transitioner.
type hostReader struct {
	*network
	moves  *Moves
	values values
	random *nn.Stream // of dropout; nil for none
	tape   tape

	sums   []float32 // of a state
	scores []float32
	costs  []uint8
}

// values are the parameters and the products of a batch.
type values struct {
	products       []float32 // (tokens of the batch, tokens of a state, width, pieces)
	bias, pad      []float32
	upper, upShift []float32
}

func newHostReader(n *network, m *Moves) *hostReader {
	return &hostReader{network: n, moves: m, sums: make([]float32, n.wide()), scores: make([]float32, n.moves), costs: make([]uint8, n.moves)}
}

func (r *hostReader) load(products nn.Buffer) {
	r.values = values{products: products.Float32s(), bias: r.b.Values.Float32s(), pad: r.pad.Values.Float32s()}
	if !r.Direct {
		r.values.upper, r.values.upShift = r.upW.Values.Float32s(), r.upB.Values.Float32s()
	}
}

func (r *hostReader) learn(p *nn.Pass, products nn.Buffer, parts []part, sums nn.Buffer) (units, dscores nn.Buffer) {
	if r.random = nil; r.drops(p) {
		r.random = &p.Random
	}
	r.load(products)
	r.tape.grow(p.Backend, r.network, states(parts))
	loss, squares, row := 0., 0., 0
	for _, part := range parts {
		loss += r.read(part, row, true, nil)
		row += part.stop - part.next
	}
	for _, d := range r.tape.dscores.Float32s() {
		squares += float64(float64(d) * float64(d)) // the conversion forbids fused arithmetic
	}
	p.Backend.Copy(sums, []float32{float32(loss), float32(squares)})
	return r.tape.units, r.tape.dscores
}

func (r *hostReader) find(b nn.Backend, products nn.Buffer, parts []part, found func(part, entity)) []float64 {
	r.random = nil
	r.load(products)
	r.tape.grow(b, r.network, 1)
	losses := make([]float64, len(parts))
	for i, part := range parts {
		losses[i] = r.read(part, 0, false, func(e entity) { found(part, e) })
	}
	return losses
}

// read makes the moves of a part, from row of the tape on, and returns the loss of its states. It
// overwrites a single row if keep is false. found may be nil.
func (r *hostReader) read(p part, row int, keep bool, found func(entity)) (loss float64) {
	s, t, tokens := p.state, &r.tape, r.Features.Tokens()
	for s.next < p.stop {
		ids := t.tokens[row*tokens:][:tokens]
		units := t.units.Float32s()[row*r.width:][:r.width]
		pieces := t.pieces[row*r.width:][:r.width]
		r.Features.of(&s, ids)
		for i := range ids {
			if ids[i] >= 0 {
				ids[i] += int32(p.first)
			}
		}
		r.add(ids)
		r.largest(units, pieces)
		if r.random != nil {
			r.drop(units, pieces, p.row, s.next)
		}
		scores := r.score(units)
		least := r.moves.costs(r.costs, &s, p.document)
		loss += logLoss(t.dscores.Float32s()[row*r.network.moves:][:r.network.moves], scores, r.costs, least)
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
func (r *hostReader) add(ids []int32) {
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
func (r *hostReader) largest(units []float32, pieces []uint8) {
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

// drop drops units of the state at a token of a document. Each token has one state, so the
// mask depends neither on the parts of the document nor on the rank that has it.
func (r *hostReader) drop(units []float32, pieces []uint8, row, token int) {
	blocks, rate, kept := (len(units)+3)/4, r.Drop, r.kept()
	for b := range blocks {
		words := r.random.Draw(r.dropper, row, token*blocks+b)
		for i := 4 * b; i < min(4*b+4, len(units)); i++ {
			if float32(words[i%4]>>8)*0x1p-24 >= rate {
				units[i] *= kept
			} else {
				units[i], pieces[i] = 0, dropped
			}
		}
	}
}

// score returns the scores of all moves.
func (r *hostReader) score(units []float32) []float32 {
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

func (r *hostReader) spread(p *nn.Pass, dunits nn.Buffer) nn.Buffer {
	b, t, tokens, wide := p.Backend, &r.tape, r.Features.Tokens(), r.wide()
	dproducts, dpad, dbias := b.Temp(len(r.values.products)), b.Temp(tokens*wide), b.Temp(wide)
	for _, v := range []nn.Buffer{dproducts, dpad, dbias} {
		clear(v.Float32s())
	}
	for row := range len(t.tokens) / tokens {
		pieces, d := t.pieces[row*r.width:][:r.width], dunits.Float32s()[row*r.width:]
		r.scatter(dbias.Float32s(), d, pieces)
		for f, id := range t.tokens[row*tokens:][:tokens] {
			to := dpad.Float32s()[f*wide:]
			if id >= 0 {
				to = dproducts.Float32s()[(int(id)*tokens+f)*wide:]
			}
			r.scatter(to, d, pieces)
		}
	}
	b.Axpy(r.b.Grads, 1, dbias)
	b.Axpy(r.pad.Grads, 1, dpad)
	return dproducts
}

// scatter adds the gradients of units to those of their largest pieces.
func (r *hostReader) scatter(to, dunits []float32, pieces []uint8) {
	for i, piece := range pieces {
		if piece != dropped {
			to[i*r.Pieces+int(piece)] += dunits[i]
		}
	}
}
