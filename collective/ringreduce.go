package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// ringReduce sends segments of chunks round the ring. In each step, a rank
// sends what it received in the step before, so a segment can leave as soon as
// it has been folded. A rank is up to ahead segments further in sending than in
// receiving, which keeps the link busy during a fold.
func (e *executor) ringReduce(h *Header, v Vector, blocks, ahead int) error {
	up, down := schedule.Up(e.rank, e.size), schedule.Down(e.rank, e.size)
	want := e.expecting(h)
	out := ringCursor{rank: e.rank, segments: e.chunk(v, 0, blocks)}
	in := ringCursor{rank: e.rank, segments: e.chunk(v, 0, blocks), receives: true}
	out.begin(0)
	in.begin(0)
	own := out.most // segments of the first step, which can leave at any time
	post := func(most int) {
		for ; !out.done() && out.passed < most; out.next() {
			e.postSegment(h, up, out.passed, &out.segments, out.k)
		}
	}
	for ; !in.done(); in.next() {
		post(min(in.passed+1+ahead, own+in.passed))
		e.in = in.appendTo(e.in[:0], in.k)
		if err := e.receiveSegment(want, down, in.passed, in.fold()); err != nil {
			return err
		}
		if in.step == e.size-2 && h.Call.Op == Mean { // the chunk is complete
			for _, mine := range e.in {
				scaleBytes(v.dtype, mine, e.size)
			}
		}
	}
	post(own + in.passed)
	return nil
}

// A ringCursor iterates over the segments that a rank sends, or receives, in
// the steps of a ring.
type ringCursor struct {
	segments // of the step's chunk
	rank     int
	receives bool

	step   int
	k      int // index of the segment in this step
	most   int // segments in this step
	passed int // segments of all steps before the current one
}

func (c *ringCursor) begin(step int) {
	c.step, c.k = step, 0
	if c.done() {
		return
	}
	s := schedule.RingStep(c.rank, c.chunk.Size, step)
	c.chunk.Residue = s.Send
	if c.receives {
		c.chunk.Residue = s.Recv
	}
	c.most = c.count()
}

func (c *ringCursor) next() {
	c.passed++
	if c.k++; c.k == c.most {
		c.begin(c.step + 1)
	}
}

func (c *ringCursor) done() bool { return c.step == schedule.RingSteps(c.chunk.Size) }

// fold reports whether to combine what arrives with this rank's elements.
func (c *ringCursor) fold() bool { return c.step < c.chunk.Size-1 }

// receiveSegment receives one segment into the memory e.in, or folds it with what
// is there.
func (e *executor) receiveSegment(h *Header, from, part int, combine bool) error {
	if !combine {
		return e.receiveParts(h, from, part, e.in)
	}
	operand := e.room(sum(e.in))
	if err := e.receive(h, from, part, operand); err != nil {
		return err
	}
	for _, mine := range e.in {
		foldBytes(h.Call.DType, h.Call.Op, mine, operand[:len(mine)], mine)
		operand = operand[len(mine):]
	}
	return nil
}
