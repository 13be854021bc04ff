package paramserver

import (
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// alignment of pieces in an arena, in elements.
const alignment = nn.ParamAlign

// offsets returns where pieces begin in the arena of a share, and its length.
func offsets(pieces []piece) (at []int, n int) {
	for _, p := range pieces {
		at = append(at, n)
		n += (p.len() + alignment - 1) / alignment * alignment
	}
	return at, n
}

// A share is what one server holds: pieces of parameters, and the optimizer's state for
// them. It computes and does not communicate.
type share struct {
	updater
	layout layout
	pieces []piece
	params *nn.Params // one for each piece
	state  *optim.State
	norms  []nn.Buffer // of all blocks of the parameter of a piece; empty for whole parameters
	file   *shareFile  // keeps the share; may be nil
}

// newShare allocates a share. Values and state are zero.
func newShare(u updater, l layout, pieces []piece) *share {
	b := u.backend
	at, n := offsets(pieces)
	p := &nn.Params{Values: b.Alloc(n), Grads: b.Alloc(n)}
	s := &share{updater: u, layout: l, pieces: pieces, params: p}
	for i, q := range pieces {
		whole := l.Parameters[q.param]
		p.List = append(p.List, &nn.Param{
			Name: whole.Name, Shape: []int{q.len()}, Offset: at[i], Momentum: whole.Momentum,
			Values: p.Values.Slice(at[i], at[i]+q.len()), Grads: p.Grads.Slice(at[i], at[i]+q.len()),
		})
		norms := nn.Buffer{}
		if q.len() < whole.Len {
			norms = b.Alloc(nn.Blocks(whole.Len))
		}
		s.norms = append(s.norms, norms)
	}
	s.state = optim.NewState(b, p, u.optimizer)
	return s
}

// arena returns a slot of the optimizer, or the values for "".
func (s *share) arena(slot string) nn.Buffer {
	if slot == "" {
		return s.params.Values
	}
	return s.state.Slots[slot]
}

// fold adds some runs of the gradients of workers, in ring order. Each of pushed is laid out
// like the share.
func (s *share) fold(runs []run, pushed [][]float32) error {
	operands := make([]collective.Vector, len(pushed))
	for _, r := range runs {
		for k := range operands {
			operands[k] = collective.Of(pushed[k][r.at : r.at+r.len]).At(r.offset)
		}
		sums := s.params.Grads.Slice(r.at, r.at+r.len).Float32s()
		if err := collective.FoldLocal(collective.Sum, collective.Of(sums).At(r.offset), operands); err != nil {
			return fmt.Errorf("paramserver: adding gradients: %w", err)
		}
	}
	return nil
}

// notFinite returns 1 + the index of a parameter in the layout whose summed gradient is not
// finite, or 0.
func (s *share) notFinite() int64 {
	bad := trainer.NotFinite(s.params)
	if bad == 0 {
		return 0
	}
	return int64(s.pieces[bad-1].param) + 1
}

// blockNorms returns the squared norms of the gradients of all cut pieces by block, as
// blocksOf counts them. The gradients are final.
func (s *share) blockNorms() []float32 {
	var norms []float32
	for i, q := range s.params.List {
		if s.norms[i].Len() == 0 {
			continue
		}
		own := s.norms[i].Slice(s.pieces[i].lo/nn.BlockSize, nn.Blocks(s.pieces[i].hi))
		s.state.BlockNorms(s.optimizer.(optim.Recordable), s.backend, q, own)
		norms = append(norms, own.Float32s()...)
	}
	return norms
}

// setBlockNorms stores the squared norms that another share has of its pieces.
func (s *share) setBlockNorms(pieces []piece, norms []float32) {
	for _, p := range pieces {
		if !p.cut(s.layout) {
			continue
		}
		n := nn.Blocks(p.len())
		for i, own := range s.pieces {
			if own.param == p.param {
				copy(s.norms[i].Float32s()[p.lo/nn.BlockSize:], norms[:n])
			}
		}
		norms = norms[n:]
	}
}

// update takes the step of the optimizer, from gradients that are multiplied by scale first.
// If a piece is cut, they are final, and scale is 1: their norms are known. Otherwise they are
// garbage afterwards.
func (s *share) update(scale float32) {
	if !s.cut() {
		optim.Spend(s.optimizer, s.backend, s.params, s.state, scale)
		return
	}
	for i, q := range s.params.List {
		part := optim.Only(q)
		if s.norms[i].Len() > 0 {
			part = optim.PieceOf(q, s.norms[i])
		}
		s.optimizer.Update(s.backend, s.params, s.state, part)
	}
	s.state.Step++
}

// cut reports whether the share has a piece that is less than its parameter.
func (s *share) cut() bool {
	return slices.ContainsFunc(s.pieces, func(p piece) bool { return p.cut(s.layout) })
}

// cut reports whether a piece is less than its parameter.
func (p piece) cut(l layout) bool { return p.len() < l.Parameters[p.param].Len }

// blocksOf returns the number of blocks in all pieces of a share that are cut.
func blocksOf(l layout, pieces []piece) (n int) {
	for _, p := range pieces {
		if p.cut(l) {
			n += nn.Blocks(p.len())
		}
	}
	return n
}
