package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// reduceScatter leaves this rank's piece of the reduction of all ranks' o.Src in
// o.Dst. Pieces lie one after another: rank r's has o.Counts[r] elements, or that of
// o.Dst if there are no Counts. The bits are those of AllReduce.
func (e *executor) reduceScatter(o *Operation) error {
	h, dst, src, counts := &o.Header, o.Dst, o.Src, o.Counts
	if done, err := e.exchange(o); done || err != nil {
		return err
	}
	width, per := src.dtype.Size(), schedule.PlanGather(e.size, src.n, src.dtype.Size(), false).Segment
	h.Call.Method = uint8(schedule.Direct)
	want := e.expecting(h)
	piece := func(r int) (lo, n int) { return pieceBounds(counts, dst.n, r) }
	most := 1 // even without elements, neighbours exchange a message to compare calls
	for r := range e.size {
		_, n := piece(r)
		most = max(most, (n+per-1)/per)
	}
	cut := func(r, k int) (lo, hi int) { // the k-th message of rank r's piece
		at, n := piece(r)
		return at + min(k*per, n), at + min((k+1)*per, n)
	}
	for k := range most {
		lo, hi := cut(e.rank, k)
		each := (hi - lo) * width
		all := e.room(e.size * each)
		operand := func(rank int) []byte { return all[rank*each : (rank+1)*each] }
		copy(operand(e.rank), src.bytes()[lo*width:hi*width])
		for i := 1; i < e.size; i++ {
			to, from := schedule.Pair(e.rank, e.size, i)
			a, b := cut(to, k)
			e.post(h, to, k, src.bytes()[a*width:b*width])
			if err := e.receive(want, from, k, operand(from)); err != nil {
				return err
			}
		}
		at, _ := piece(e.rank)
		e.foldRange(h, src.arena+lo, dst.bytes()[(lo-at)*width:(hi-at)*width], operand)
	}
	return nil
}
