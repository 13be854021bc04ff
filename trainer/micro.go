package trainer

import (
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// micro is the gradients of a step's micro-batches, each in an arena of its
// own. The last ones are where the model makes them, in Params.Grads.
type micro struct {
	backend nn.Backend
	grads   nn.Buffer   // Params.Grads
	kept    []nn.Buffer // of all micro-batches but the last; in device memory one, their sum
	sum     bool        // kept is one Buffer
	sums    []nn.Buffer // for Accumulate: of all steps so far, one for each micro-batch

	operands []collective.Vector
}

func newMicro(c Config, p *nn.Params) *micro {
	m := &micro{backend: c.Backend, grads: p.Grads, sum: onDevice(p.Grads)}
	arenas := len(c.Train) - 1
	if m.sum {
		arenas = min(arenas, 1)
	}
	for range arenas {
		m.kept = append(m.kept, c.Backend.Alloc(p.Grads.Len()))
	}
	if c.Accumulate {
		for range c.Train {
			m.sums = append(m.sums, c.Backend.Alloc(p.Grads.Len()))
		}
	}
	return m
}

// average makes the gradients of a micro-batch what a sum over ranks takes: the
// mean over its rows, or with Accumulate the sum of the means of all steps.
func (m *micro) average(s Step, k, rows int) {
	if !s.Undivided {
		return
	}
	share := 1 / float32(max(rows, 1))
	if m.sums == nil {
		m.backend.Scale(m.grads, share)
		return
	}
	m.backend.Axpy(m.sums[k], share, m.grads)
	m.backend.Zero(m.grads)
	m.backend.Axpy(m.grads, 1, m.sums[k])
}

// keep puts the gradients of micro-batch k aside.
func (m *micro) keep(k int) {
	if !m.sum {
		copy(m.kept[k].Float32s(), m.grads.Float32s())
		return
	}
	if k == 0 {
		m.backend.Zero(m.kept[0])
	}
	m.backend.Axpy(m.kept[0], 1, m.grads)
}

// folding is a Pass.Final of the last micro-batch, which completes what it
// reports by that of the others.
func (m *micro) folding(final func(lo int)) func(lo int) {
	hi := m.grads.Len()
	return func(lo int) {
		if lo < hi {
			m.fold(lo, hi)
			hi = lo
		}
		final(lo)
	}
}

// fold adds elements lo to hi of all micro-batches, as ranks would; in device
// memory one after the other, the last one last.
func (m *micro) fold(lo, hi int) {
	if len(m.kept) == 0 {
		return
	}
	if m.sum {
		m.backend.Axpy(m.grads.Slice(lo, hi), 1, m.kept[0].Slice(lo, hi))
		return
	}
	m.operands = m.operands[:0]
	for _, b := range m.kept {
		m.operands = append(m.operands, collective.Of(b.Float32s()[lo:hi]).At(lo))
	}
	dst := collective.Of(m.grads.Float32s()[lo:hi]).At(lo)
	m.operands = append(m.operands, dst)
	_ = collective.FoldLocal(collective.Sum, dst, m.operands) // it fails on vectors that are not alike, and these are
}
