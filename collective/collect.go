package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// collect gathers what every rank has, in the pieces of all, each so long, on
// rank 0: each rank sends up a binomial tree what it has collected.
func (e *HostEngine) collect(h, want *Header, all []byte, each int) error {
	if err := e.compare(h, want); err != nil { // or a parent would wait for who calls something else
		return err
	}
	for i := range schedule.Children(e.rank, e.size) {
		child := e.rank + 1<<i
		e.whole[0] = all[child*each : schedule.Through(child, e.size)*each]
		if err := e.receive(want, child, 1, e.whole[:]); err != nil {
			return err
		}
	}
	if e.rank != 0 {
		e.post(h, schedule.Parent(e.rank), 1, all[e.rank*each:schedule.Through(e.rank, e.size)*each])
	}
	return nil
}

// spread copies what rank 0 has in b to all others, down the same tree.
func (e *HostEngine) spread(h, want *Header, b []byte) error {
	if e.rank != 0 {
		e.whole[0] = b
		if err := e.receive(want, schedule.Parent(e.rank), 2, e.whole[:]); err != nil {
			return err
		}
	}
	for i := schedule.Children(e.rank, e.size) - 1; i >= 0; i-- { // the deepest first
		e.post(h, e.rank+1<<i, 2, b)
	}
	return nil
}

// collectReduce folds all vectors on rank 0, in ring order.
func (e *HostEngine) collectReduce(h *Header, v Vector) error {
	mine := v.bytes()
	all := e.room(e.size * len(mine))
	operand := func(rank int) []byte { return all[rank*len(mine) : (rank+1)*len(mine)] }
	copy(operand(e.rank), mine)
	want := e.expecting(h)
	if err := e.collect(h, want, all, len(mine)); err != nil {
		return err
	}
	if e.rank == 0 {
		e.foldRange(h, v, 0, v.n, operand, mine)
	}
	return e.spread(h, want, mine)
}
