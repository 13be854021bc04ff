package collective

import (
	"github.com/ringtrain/ringtrain/collective/fold"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// allReduce leaves the reduction of all ranks' o.Src in o.Dst on every rank.
func (e *executor) allReduce(o *Operation) error {
	if e.situation.AlwaysShared() {
		return e.sharedReduce(o)
	}
	h, dst, src := &o.Header, o.Dst, o.Src
	plan := e.plan(dst, h.Call.Op)
	if plan.Method == schedule.Shared {
		return e.sharedReduce(o)
	}
	h.Call.Method = uint8(plan.Method)
	if !dst.same(&src) {
		fold.Copy(dst.bytes(), src.bytes())
	}
	if e.size == 1 {
		return nil
	}
	blocks := plan.Segment / schedule.BlockLen
	switch plan.Method {
	case schedule.Ring:
		return e.ringReduce(h, dst, blocks, plan.Ahead)
	case schedule.Direct:
		return e.directReduce(h, dst, blocks)
	case schedule.OneShot, schedule.Bruck:
		return e.gatherReduce(h, dst, plan.Method)
	case schedule.Collected:
		return e.collectReduce(h, dst)
	}
	return e.moveReduce(h, dst, plan)
}

// sharedReduce has the transport carry out the AllReduce in shared memory.
func (e *executor) sharedReduce(o *Operation) error {
	e.reduced += o.markShared()
	return e.performShared(o)
}

// markShared is mark for an AllReduce. It returns the size of the vector in bytes, and does not
// copy the vector; see Operation.
func (o *Operation) markShared() int {
	bytes := o.Src.n * o.Src.dtype.Size()
	o.mark(bytes)
	return bytes
}

// gatherReduce sends all vectors to every rank, directly or by Bruck's algorithm.
// Each rank folds them in ring order.
func (e *executor) gatherReduce(h *Header, v Vector, m schedule.Method) error {
	mine := v.bytes()
	all := e.room(e.size * len(mine))
	operand := func(rank int) []byte { return all[rank*len(mine) : (rank+1)*len(mine)] }
	copy(operand(e.rank), mine)
	if err := e.gatherPieces(h, m, operand); err != nil {
		return err
	}
	e.foldRange(h, v.arena, mine, operand)
	return nil
}
