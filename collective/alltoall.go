package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// allToAll sends piece r of this rank to rank r, and receives the piece from rank
// r, for all r.
func (c *copier) allToAll(o *Operation) error {
	if done, err := c.exchange(o); done || err != nil {
		return err
	}
	h, per, width := &o.Header, schedule.SegmentBytes, o.Call.DType.Size()
	h.Call.Method = uint8(schedule.Direct)
	want := c.expecting(h)
	copyScattered(o.piece(c.rank, c.size, false), o.piece(c.rank, c.size, true))
	for i := 1; i < c.size; i++ {
		to, from := schedule.Pair(c.rank, c.size, i)
		give, get := o.piece(to, c.size, true), o.piece(from, c.size, false)
		if o.Counts != nil || o.W != nil { // each pair of ranks agrees on its own counts
			h.Call.Count, want.Call.Count = uint64(sum(give)/width), uint64(sum(get)/width)
		}
		// At least one message each way, so that neighbours compare calls.
		sends, gets := max(1, messages(sum(give), per)), max(1, messages(sum(get), per))
		giving, getting := cursor{left: give}, cursor{left: get}
		for k := range max(sends, gets) {
			if k < sends {
				m := c.out.slot()
				m.to, m.h = to, *h
				m.parts = giving.next(m.parts[:0], per)
				c.submit(m, k)
			}
			if k < gets {
				c.in = getting.next(c.in[:0], per)
				if err := c.receiveParts(want, from, k, c.in); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// piece returns the piece that an AllToAll sends to a rank, or receives from it.
// Counts has the elements sent to each rank, followed by those received from each;
// nil means equal pieces.
func (o *Operation) piece(rank, size int, sent bool) scattered {
	v, counts := &o.Dst, o.Counts
	switch {
	case o.W != nil && sent:
		return o.W.sends[rank]
	case o.W != nil:
		return o.W.recvs[rank]
	case sent:
		v = &o.Src
		if counts != nil {
			counts = counts[:size]
		}
	case counts != nil:
		counts = counts[size:]
	}
	lo, n := pieceBounds(counts, v.n/size, rank)
	width := v.dtype.Size()
	return scattered{v.bytes()[lo*width : (lo+n)*width]}
}
