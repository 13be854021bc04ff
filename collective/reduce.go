package collective

import (
	"math"
	"unsafe"

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
		copy(dst.bytes(), src.bytes())
	}
	blocks := plan.Segment / schedule.BlockLen
	switch plan.Method {
	case schedule.Ring:
		return e.ringReduce(h, dst, blocks, plan.Ahead)
	case schedule.Direct:
		return e.directReduce(h, dst, blocks)
	case schedule.OneShot, schedule.Bruck:
		return e.knowReduce(h, dst, plan.Method)
	case schedule.Collected:
		return e.collectReduce(h, dst)
	}
	return e.moveReduce(h, dst, plan)
}

// sharedReduce has the transport carry out the AllReduce in shared memory.
func (e *executor) sharedReduce(o *Operation) error {
	o.share()
	return e.shared(o)
}

// share marks the call as one that the transport carries out in shared memory.
func (o *Operation) share() {
	o.Call.Method = uint8(schedule.Shared)
	o.Part, o.Len = 0, uint32(min(int64(o.Src.Bytes()), math.MaxUint32))
}

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
		if err := e.take(want, down, in.passed, in.fold()); err != nil {
			return err
		}
		if in.step == e.size-2 && h.Call.Op == Mean { // the chunk is complete
			for _, place := range e.in {
				scaleBytes(v.dtype, place, e.size)
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

// fold reports whether to combine what arrives with the own elements.
func (c *ringCursor) fold() bool { return c.step < c.chunk.Size-1 }

// take receives one segment into the memory e.in, or folds it with what is
// there.
func (e *executor) take(h *Header, from, part int, combine bool) error {
	if !combine {
		return e.receiveParts(h, from, part, e.in)
	}
	operand := e.room(sum(e.in))
	if err := e.receive(h, from, part, operand); err != nil {
		return err
	}
	for _, place := range e.in {
		foldBytes(h.Call.DType, h.Call.Op, place, operand[:len(place)], place)
		operand = operand[len(place):]
	}
	return nil
}

// knowReduce sends all vectors to every rank, directly or by Bruck's algorithm.
// Each rank folds them in ring order.
func (e *executor) knowReduce(h *Header, v Vector, m schedule.Method) error {
	mine := v.bytes()
	all := e.room(e.size * len(mine))
	operand := func(rank int) []byte { return all[rank*len(mine) : (rank+1)*len(mine)] }
	copy(operand(e.rank), mine)
	if err := e.know(h, m, operand); err != nil {
		return err
	}
	e.foldRange(h, v.arena, mine, operand)
	return nil
}

// scaleBytes multiplies floats by 1/size.
func scaleBytes(t DType, b []byte, size int) {
	switch t {
	case Float32:
		fold.Scale(elements[float32](b), 1/float32(size))
	case Float64:
		fold.Scale(elements[float64](b), 1/float64(size))
	}
}

// foldBytes is fold.Into for elements whose type is known only at run time.
// Callers use it only for the types below; 16-bit floats are folded by Chain.
func foldBytes(t DType, op Op, dst, a, b []byte) {
	switch t {
	case Float32:
		fold.Into(op.step(), elements[float32](dst), elements[float32](a), elements[float32](b))
	case Float64:
		fold.Into(op.step(), elements[float64](dst), elements[float64](a), elements[float64](b))
	case Int32:
		fold.Into(op.step(), elements[int32](dst), elements[int32](a), elements[int32](b))
	case Int64:
		fold.Into(op.step(), elements[int64](dst), elements[int64](a), elements[int64](b))
	case Uint8:
		fold.Into(op.step(), dst, a, b)
	}
}

// elements returns bytes as elements. They are aligned, because vectors are
// slices of elements, scratch memory consists of words, and blocks hold whole
// elements.
func elements[T fold.Number | uint16](b []byte) []T {
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(one)))
}

func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}
