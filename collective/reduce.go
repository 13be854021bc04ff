package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// reduce leaves the reduction of all ranks' o.Src in o.Dst on the root.
func (e *executor) reduce(o *Operation) error {
	h, dst, src := &o.Header, o.Dst, o.Src
	if done, err := e.exchange(o); done || err != nil {
		return err
	}
	width := src.dtype.Size()
	per := schedule.PlanGather(e.size, src.n, width, false).Segment
	root, want := e.rooted(h)
	if src.n == 0 {
		return e.compare(h, want)
	}
	if e.rank != root {
		return e.give(h, want, src.bytes(), per*width)
	}
	if e.size > 1 {
		e.tell(h)
	}
	for lo, part := 0, 1; lo < src.n; lo, part = lo+per, part+1 {
		hi := min(lo+per, src.n)
		mine := src.bytes()[lo*width : hi*width]
		each := len(mine)
		all := e.room(e.size * each)
		operand := func(rank int) []byte { return all[rank*each : (rank+1)*each] }
		copy(operand(root), mine)
		for i := 1; i < e.size; i++ {
			_, from := schedule.Pair(e.rank, e.size, i)
			if err := e.receive(want, from, part, operand(from)); err != nil {
				return err
			}
		}
		e.foldRange(h, src.arena+lo, dst.bytes()[lo*width:hi*width], operand)
	}
	return nil
}

// foldRange folds all ranks' elements into dst. They begin at index at of their
// arena; operand(r) holds those of rank r.
func (e *executor) foldRange(h *Header, at int, dst []byte, operand func(rank int) []byte) {
	e.operands = e.operands[:0]
	for r := range e.size {
		e.operands = append(e.operands, operand(r))
	}
	e.chain.reduce(&h.Call, at, dst, e.operands)
}
