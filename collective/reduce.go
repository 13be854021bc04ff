package collective

import (
	"math"
	"unsafe"

	"github.com/ringtrain/ringtrain/collective/fold"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// allReduce leaves in o.Dst, on every rank, the reduction of all ranks' o.Src.
func (e *HostEngine) allReduce(o *Operation) error {
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

// sharedReduce leaves all of it to the transport.
func (e *HostEngine) sharedReduce(o *Operation) error {
	o.share()
	return e.can.Reduce.AllReduce(o)
}

// share makes it a call that is the transport's.
func (o *Operation) share() {
	o.Call.Method = uint8(schedule.Shared)
	o.Part, o.Len = 0, uint32(min(int64(o.Src.Bytes()), math.MaxUint32))
}

// reducer is the transport if it does operations by itself, or nil.
func (e *HostEngine) reducer() Reducer {
	if e.situation.Force != 0 && e.situation.Force != schedule.Shared {
		return nil
	}
	return e.can.Reduce
}

// ringReduce sends segments of chunks round the ring. What a rank sends in a
// step is what it received in the step before, so a segment can leave as soon
// as it was folded; up to ahead more of them leave than have come, so that the
// link has something to carry meanwhile.
func (e *HostEngine) ringReduce(h *Header, v Vector, blocks, ahead int) error {
	up, down := schedule.Up(e.rank, e.size), schedule.Down(e.rank, e.size)
	want := e.expecting(h)
	out := ringCursor{e: e, v: v, blocks: blocks}
	in := ringCursor{e: e, v: v, blocks: blocks, receives: true}
	out.begin(0)
	in.begin(0)
	own := out.segments // of the first step: they wait for nothing
	post := func(most int) {
		for ; !out.done() && out.count < most; out.next() {
			e.postSegment(h, up, out.count, v, out.chunk, out.k, blocks)
		}
	}
	for ; !in.done(); in.next() {
		post(min(in.count+1+ahead, own+in.count))
		e.in = segment(e.in[:0], v, in.chunk, in.k, blocks)
		if err := e.take(want, v, down, in.count, in.fold()); err != nil {
			return err
		}
		if in.step == e.size-2 && h.Call.Op == Mean { // the chunk is complete
			for _, place := range e.in {
				scaleBytes(v.dtype, place, e.size)
			}
		}
	}
	post(own + in.count)
	return nil
}

// A ringCursor goes through the segments that a rank sends, or receives, in the
// steps of a ring.
type ringCursor struct {
	e        *HostEngine
	v        Vector
	blocks   int
	receives bool

	step     int
	chunk    schedule.Chunk
	k        int // of the chunk's segments
	segments int
	count    int // segments that came before
}

func (c *ringCursor) begin(step int) {
	c.step, c.k = step, 0
	if c.done() {
		return
	}
	s := schedule.RingStep(c.e.rank, c.e.size, step)
	residue := s.Send
	if c.receives {
		residue = s.Recv
	}
	c.chunk = c.e.chunk(c.v, residue)
	c.segments = c.chunk.Segments(c.blocks)
}

func (c *ringCursor) next() {
	c.count++
	if c.k++; c.k == c.segments {
		c.begin(c.step + 1)
	}
}

func (c *ringCursor) done() bool { return c.step == schedule.RingSteps(c.e.size) }

// fold reports whether what arrives is to be combined with what is there.
func (c *ringCursor) fold() bool { return c.step < c.e.size-1 }

// take receives one segment into the places e.in, or folds it with what is
// there.
func (e *HostEngine) take(h *Header, v Vector, from, part int, combine bool) error {
	if !combine {
		return e.receive(h, from, part, e.in)
	}
	operand := e.room(sum(e.in))
	e.whole[0] = operand
	if err := e.receive(h, from, part, e.whole[:]); err != nil {
		return err
	}
	for _, place := range e.in {
		foldBytes(v.dtype, h.Call.Op, place, operand[:len(place)], place)
		operand = operand[len(place):]
	}
	return nil
}

// knowReduce has every rank learn all vectors, by a one-shot or as Bruck says;
// each folds them for itself, in ring order.
func (e *HostEngine) knowReduce(h *Header, v Vector, m schedule.Method) error {
	mine := v.bytes()
	all := e.room(e.size * len(mine))
	operand := func(rank int) []byte { return all[rank*len(mine) : (rank+1)*len(mine)] }
	copy(operand(e.rank), mine)
	if err := e.know(h, m, operand); err != nil {
		return err
	}
	e.foldRange(h, v, 0, v.n, operand, mine)
	return nil
}

// scaleBytes multiplies by 1/size.
func scaleBytes(t DType, b []byte, size int) {
	switch t {
	case Float32:
		fold.Scale(elements[float32](b), 1/float32(size))
	case Float64:
		fold.Scale(elements[float64](b), 1/float64(size))
	}
}

func (e *HostEngine) chunk(v Vector, residue int) schedule.Chunk {
	return schedule.Chunk{Offset: v.arena, Len: v.n, Residue: residue, Size: e.size}
}

// segment appends the memory of the k-th segment of a chunk to parts.
func segment(parts [][]byte, v Vector, c schedule.Chunk, k, blocks int) [][]byte {
	width, mem := v.dtype.Size(), v.bytes()
	first, last := c.Segment(k, blocks)
	for b := first; b < last; b++ {
		lo, hi := c.Block(b)
		parts = append(parts, mem[lo*width:hi*width])
	}
	return parts
}

// foldBytes is fold.Into for memory of a type known at run time. NewGroup's
// checks leave only the types below.
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

// elements is bytes seen as elements. Vectors are made of slices of elements
// and scratch of words, and blocks are whole elements, so they are aligned.
func elements[T fold.Number | uint16](b []byte) []T {
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(one)))
}

func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}
