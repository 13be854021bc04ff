package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// collect gathers the pieces of all ranks, each bytes long, in all on rank 0.
// Each rank sends up a binomial tree what it has collected.
func (c *copier) collect(h, want *Header, all []byte, each int) error {
	if err := c.compare(h, want); err != nil { // otherwise a parent would wait for a child that makes a different call
		return err
	}
	for i := range schedule.Children(c.rank, c.size) {
		child := c.rank + 1<<i
		if err := c.receive(want, child, 1, all[child*each:schedule.Through(child, c.size)*each]); err != nil {
			return err
		}
	}
	if c.rank != 0 {
		c.post(h, schedule.Parent(c.rank), 1, all[c.rank*each:schedule.Through(c.rank, c.size)*each])
	}
	return nil
}

// spread copies b of rank 0 to all other ranks, down the same tree.
func (c *copier) spread(h, want *Header, b []byte) error {
	if c.rank != 0 {
		if err := c.receive(want, schedule.Parent(c.rank), 2, b); err != nil {
			return err
		}
	}
	for i := schedule.Children(c.rank, c.size) - 1; i >= 0; i-- { // largest subtree first
		c.post(h, c.rank+1<<i, 2, b)
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
