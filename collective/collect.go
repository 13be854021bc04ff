package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// collect gathers the pieces of all ranks, each bytes long, in all on rank 0.
// Each rank sends up a binomial tree what it has collected.
func (m *mover) collect(h, want *Header, all []byte, each int) error {
	if err := m.compare(h, want); err != nil { // otherwise a parent would wait for a child that makes a different call
		return err
	}
	for i := range schedule.Children(m.rank, m.size) {
		child := m.rank + 1<<i
		if err := m.receive(want, child, 1, all[child*each:schedule.Through(child, m.size)*each]); err != nil {
			return err
		}
	}
	if m.rank != 0 {
		m.post(h, schedule.Parent(m.rank), 1, all[m.rank*each:schedule.Through(m.rank, m.size)*each])
	}
	return nil
}

// spread copies b of rank 0 to all other ranks, down the same tree.
func (m *mover) spread(h, want *Header, b []byte) error {
	if m.rank != 0 {
		if err := m.receive(want, schedule.Parent(m.rank), 2, b); err != nil {
			return err
		}
	}
	for i := schedule.Children(m.rank, m.size) - 1; i >= 0; i-- { // largest subtree first
		m.post(h, m.rank+1<<i, 2, b)
	}
	return nil
}

// collectReduce folds all vectors on rank 0, in ring order, and sends the
// result to all ranks.
func (e *executor) collectReduce(h *Header, v Vector) error {
	mine := v.bytes()
	all := e.room(e.size * len(mine))
	operand := func(rank int) []byte { return all[rank*len(mine) : (rank+1)*len(mine)] }
	copy(operand(e.rank), mine)
	want := e.expecting(h)
	if err := e.collect(h, want, all, len(mine)); err != nil {
		return err
	}
	if e.rank == 0 {
		e.foldRange(h, v.arena, mine, operand)
	}
	return e.spread(h, want, mine)
}
