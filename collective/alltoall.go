package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// allToAll sends piece r of src to rank r and stores the piece from rank r as
// piece r of dst. counts has the elements sent to each rank, followed by those
// received from each; nil means equal pieces.
func (c *copier) allToAll(h *Header, dst, src Vector, counts []int) error {
	per, width := schedule.SegmentBytes, src.dtype.Size()
	h.Call.Method = uint8(schedule.Direct)
	want := c.expecting(h)
	var out, in []int
	if counts != nil {
		out, in = counts[:c.size], counts[c.size:]
	}
	piece := func(v Vector, counts []int, r int) []byte {
		lo, n := pieceBounds(counts, v.n/c.size, r)
		return v.bytes()[lo*width : (lo+n)*width]
	}
	copy(piece(dst, in, c.rank), piece(src, out, c.rank))
	for i := 1; i < c.size; i++ {
		to, from := schedule.Pair(c.rank, c.size, i)
		give, get := piece(src, out, to), piece(dst, in, from)
		if counts != nil { // each pair of ranks agrees on its own counts
			h.Call.Count, want.Call.Count = uint64(len(give)/width), uint64(len(get)/width)
		}
		// At least one message each way, so that neighbours compare calls.
		sends, gets := max(1, messages(len(give), per)), max(1, messages(len(get), per))
		for k := range max(sends, gets) {
			if k < sends {
				c.post(h, to, k, give[min(k*per, len(give)):min((k+1)*per, len(give))])
			}
			if k < gets {
				if err := c.receive(want, from, k, get[min(k*per, len(get)):min((k+1)*per, len(get))]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
