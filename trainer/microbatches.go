package trainer

import (
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// microBatches holds the gradients of a step's micro-batches, each in an arena of its own.
// Those of the last are in Params.Grads, where the model puts them.
type microBatches struct {
	backend nn.Backend
	grads   nn.Buffer   // Params.Grads
	kept    []nn.Buffer // of all micro-batches but the last; in device memory, only their sum
	sum     bool        // kept is a single sum
	total   bool        // gradients of rows are summed, not averaged: ReduceTotal
	sums    []nn.Buffer // for Accumulate: over all steps so far, one per micro-batch

	operands []collective.Vector
}

func newMicroBatches(c Config, p *nn.Params) *microBatches {
	m := &microBatches{backend: c.Backend, grads: p.Grads, sum: onDevice(p.Grads), total: c.Reduce == ReduceTotal}
	arenas := c.Task.Micro() - 1
	if m.sum {
		arenas = min(arenas, 1)
	}
	for range arenas {
		m.kept = append(m.kept, c.Backend.Alloc(p.Grads.Len()))
	}
	if c.Accumulate {
		for range c.Task.Micro() {
			m.sums = append(m.sums, c.Backend.Alloc(p.Grads.Len()))
		}
	}
	return m
}

// average prepares the gradients of micro-batch k for an undivided sum over ranks:
// it takes the mean over its rows, unless their total is wanted. With Accumulate it adds
// those of all steps before.
func (m *microBatches) average(s Step, k, rows int) {
	if !s.Undivided {
		return
	}
	share := float32(1)
	if !m.total {
		share /= float32(max(rows, 1))
	}
	if m.sums == nil {
		m.backend.Scale(m.grads, share)
		return
	}
	m.backend.Axpy(m.sums[k], share, m.grads)
	m.backend.Zero(m.grads)
	m.backend.Axpy(m.grads, 1, m.sums[k])
}

// keep saves the gradients of micro-batch k before the next overwrites them.
func (m *microBatches) keep(k int) {
	if !m.sum {
		copy(m.kept[k].Float32s(), m.grads.Float32s())
		return
	}
	if k == 0 {
		m.backend.Zero(m.kept[0])
	}
	m.backend.Axpy(m.kept[0], 1, m.grads)
}

// folding returns a Pass.Final for the last micro-batch. It adds the gradients of the
// other micro-batches before it passes them on.
func (m *microBatches) folding(final func(lo int)) func(lo int) {
	hi := m.grads.Len()
	return func(lo int) {
		if lo < hi {
			m.fold(lo, hi)
			hi = lo
		}
		final(lo)
	}
}

// fold adds elements lo to hi of all micro-batches, in the order in which as many
// ranks would. In device memory it adds one after the other, the last one last.
func (m *microBatches) fold(lo, hi int) {
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
	_ = collective.FoldLocal(collective.Sum, dst, m.operands) // fails only if types or lengths differ
}
