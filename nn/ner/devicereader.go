package ner

import (
	"slices"

	"github.com/ringtrain/ringtrain/nn"
)

// A deviceReader is the reader of a backend that makes the moves by itself.
type deviceReader struct {
	*network
	moves        *Moves
	transitioner nn.Transitioner

	plan  []int32   // what the backend needs to know of parts
	ints  nn.Buffer // plan, and what else is int32, in the backend's memory
	batch nn.TransitionBatch
}

func (r *deviceReader) learn(p *nn.Pass, products nn.Buffer, parts []part, sums nn.Buffer) (units, dscores nn.Buffer) {
	b, t := p.Backend, &r.batch
	r.load(b, products, parts, true)
	if r.drops(p) {
		t.Rate, t.Layer, t.Random = r.Drop, r.dropper, p.Random
	}
	r.transitioner.Transitions(*t)
	b.Zero(sums)
	b.SumRows(sums, t.Totals)
	return t.Units, t.DScores
}

func (r *deviceReader) spread(p *nn.Pass, dunits nn.Buffer) nn.Buffer {
	dproducts := p.Backend.Temp(r.batch.Products.Len())
	r.transitioner.TransitionsGrad(dproducts, r.pad.Grads, r.b.Grads, dunits, r.batch)
	return dproducts
}

func (r *deviceReader) find(b nn.Backend, products nn.Buffer, parts []part, found func(part, entity)) []float64 {
	r.load(b, products, parts, false)
	r.transitioner.Transitions(r.batch)
	moves, totals := make([]float32, r.batch.Moves.Len()), make([]float32, r.batch.Totals.Len())
	b.Read(moves, r.batch.Moves)
	b.Read(totals, r.batch.Totals)
	losses := make([]float64, len(parts))
	row := 0
	for i, p := range parts {
		losses[i] = float64(totals[2*i])
		// If the backend has failed, the moves are NaNs, and Sync will return the reason.
		for s := p.state; s.next < p.stop && moves[row] >= 0; row++ {
			if e, ended := r.moves.apply(&s, int(moves[row])); ended {
				found(p, e)
			}
		}
	}
	return losses
}

// load sets r.batch to the states of parts. learning leaves room for what TransitionsGrad needs.
func (r *deviceReader) load(b nn.Backend, products nn.Buffer, parts []part, learning bool) {
	tokens, rows := products.Len()/r.products(), states(parts)
	documents := r.describe(parts, tokens)
	kept := 0
	if learning {
		kept = rows
	}
	wanted := len(r.plan) + kept*(r.Features.Tokens()+r.width)
	if wanted > r.ints.Len() {
		r.ints = b.AllocInts(max(wanted, 2*r.ints.Len()))
	}
	b.CopyInts(r.ints.Slice(0, len(r.plan)), r.plan)
	left := r.ints
	next := func(n int) nn.Buffer {
		v := left.Slice(0, n)
		left = left.Slice(n, left.Len())
		return v
	}
	r.batch = nn.TransitionBatch{
		TransitionShape: nn.TransitionShape{Features: int(r.Features), Tokens: r.Features.Tokens(), Width: r.width, Pieces: r.Pieces, Labels: len(r.moves.labels)},
		Parts:           next(len(parts) * nn.TransitionPartLen), Documents: next(documents + 1), Tags: next(tokens),
		Products: products, Pad: r.pad.Values, Bias: r.b.Values,
		FeatureTokens: next(kept * r.Features.Tokens()), Largest: next(kept * r.width),
		Units: b.Temp(rows * r.width), DScores: b.Temp(rows * r.network.moves), Moves: b.Temp(rows), Totals: b.Temp(2 * len(parts)),
	}
	if !r.Direct {
		r.batch.Upper, r.batch.UpperBias = r.upW.Values, r.upB.Values
	}
}

// describe sets r.plan to the Parts, Documents and Tags of a nn.TransitionBatch, and returns the
// number of documents.
func (r *deviceReader) describe(parts []part, tokens int) (documents int) {
	plan, row := r.plan[:0], 0
	var rows []int32
	for i, p := range parts {
		if i == 0 || p.row != parts[i-1].row {
			rows = append(rows, int32(row))
		}
		plan = nn.TransitionPart{
			Document: p.row, First: p.first, End: p.end, Stop: p.stop, Row: row,
			Next: p.next, Begin: p.begin, Label: p.label,
		}.Append(plan)
		row += p.stop - p.next
	}
	plan = append(append(plan, rows...), int32(row))
	plan = slices.Grow(plan, tokens)
	tags := plan[len(plan) : len(plan)+tokens]
	clear(tags) // those of documents without parts are not used
	for _, p := range parts {
		for i, t := range p.gold {
			tags[p.first+i] = nn.TransitionTag(int(t.action), int(t.label), p.blank != nil && p.blank[i])
		}
	}
	r.plan = plan[:len(plan)+tokens]
	return len(rows)
}
