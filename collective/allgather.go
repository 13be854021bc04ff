package collective

import (
	"github.com/ringtrain/ringtrain/collective/fold"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// allGather leaves the src of all ranks, in rank order, in dst on every rank.
// Rank r contributes counts[r] elements, or src.n if counts is nil.
func (c *copier) allGather(o *Operation) error {
	h, dst, src, counts := &o.Header, o.Dst, o.Src, o.Counts
	if done, err := c.exchange(o); done || err != nil {
		return err
	}
	width := src.dtype.Size()
	piece := func(r int) []byte {
		lo, n := pieceBounds(counts, src.n, r)
		return dst.bytes()[lo*width : (lo+n)*width]
	}
	fold.CopyPast(piece(c.rank), src.bytes())
	plan := schedule.PlanGather(c.size, dst.n/c.size, width, c.situation.OneHost())
	if plan.Method == schedule.Collected && counts != nil { // a tree needs pieces of one length
		plan.Method = schedule.Bruck
	}
	h.Call.Method = uint8(plan.Method)
	want := c.expecting(h)
	if plan.Method == schedule.Collected {
		if err := c.collect(h, want, dst.bytes(), src.Bytes()); err != nil {
			return err
		}
		if err := c.flush(); err != nil { // spread overwrites what was sent
			return err
		}
		return c.spread(h, want, dst.bytes())
	}
	if plan.Method != schedule.Ring {
		return c.gatherPieces(h, plan.Method, piece)
	}
	up, down := schedule.Up(c.rank, c.size), schedule.Down(c.rank, c.size)
	bytes, sent, got := plan.Segment*width, 0, 0
	for i := range c.size - 1 {
		step := schedule.GatherStep(c.rank, c.size, i)
		out, in := piece(step.Send), piece(step.Recv)
		for k := range max(1, messages(len(out), bytes), messages(len(in), bytes)) {
			if k < max(1, messages(len(out), bytes)) {
				c.post(h, up, sent, out[min(k*bytes, len(out)):min((k+1)*bytes, len(out))])
				sent++
			}
			if k < max(1, messages(len(in), bytes)) {
				if err := c.receive(want, down, got, in[min(k*bytes, len(in)):min((k+1)*bytes, len(in))]); err != nil {
					return err
				}
				got++
			}
		}
	}
	return nil
}

// gatherPieces leaves rank r's piece in piece(r) on every rank, for all r, by
// Bruck's algorithm or in one shot.
func (c *copier) gatherPieces(h *Header, method schedule.Method, piece func(rank int) []byte) error {
	if method == schedule.Bruck {
		return c.bruckGather(h, c.expecting(h), piece)
	}
	return c.oneShotGather(h, c.expecting(h), piece)
}

// bruckGather is Bruck's algorithm. In each round, a rank sends all pieces that it
// has to a rank twice as far away as in the round before.
func (c *copier) bruckGather(h, want *Header, piece func(rank int) []byte) error {
	for i := range schedule.Rounds(c.size) {
		to, from := schedule.Round(c.rank, c.size, i)
		c.post(h, to, i, c.bruckPieces(c.rank, i, piece)...)
		if err := c.receiveParts(want, from, i, c.bruckPieces(from, i, piece)); err != nil {
			return err
		}
	}
	return nil
}

// bruckPieces returns the pieces that a rank sends in a round. The list is valid
// until the next call.
func (c *copier) bruckPieces(rank, round int, piece func(rank int) []byte) [][]byte {
	c.in = c.in[:0]
	for k := range schedule.Told(c.size, round) {
		c.in = append(c.in, piece((rank-k+c.size)%c.size))
	}
	return c.in
}

// oneShotGather sends this rank's piece to every other rank. Before each receive,
// it has posted as many messages as the sender has slots for.
func (c *copier) oneShotGather(h, want *Header, piece func(rank int) []byte) error {
	posted := 0
	for i := 1; i < c.size; i++ {
		for ; posted < min(c.size-1, i-1+sendSlots); posted++ {
			to, _ := schedule.Pair(c.rank, c.size, posted+1)
			c.post(h, to, 0, piece(c.rank))
		}
		_, from := schedule.Pair(c.rank, c.size, i)
		if err := c.receive(want, from, 0, piece(from)); err != nil {
			return err
		}
	}
	return nil
}
