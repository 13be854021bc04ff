package collective

import (
	"unsafe"

	"github.com/ringtrain/ringtrain/collective/fold"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// allReduce leaves in dst, on every rank, the reduction of all ranks' src.
func (e *hostEngine) allReduce(h *Header, dst, src Vector) error {
	if !dst.same(src) {
		copy(dst.bytes(), src.bytes())
	}
	plan := schedule.PlanReduce(e.size, dst.n, dst.dtype.Size(), !widened(dst.dtype, h.Call.Op))
	if e.method != 0 && (e.method != schedule.Ring || !widened(dst.dtype, h.Call.Op)) {
		plan.Method = e.method
	}
	h.Call.Method = uint8(plan.Method)
	switch plan.Method {
	case schedule.Ring:
		return e.ringReduce(h, dst, plan.Segment/schedule.BlockLen)
	case schedule.Direct:
		return e.directReduce(h, dst, plan.Segment/schedule.BlockLen)
	}
	return e.oneShotReduce(h, dst)
}

// ringReduce sends segments of chunks round the ring. The segment that is sent
// in a step is the one that was folded in the step before, so messages flow
// without a pause when a chunk has several segments.
func (e *hostEngine) ringReduce(h *Header, v Vector, blocks int) error {
	up, down := schedule.Up(e.rank, e.size), schedule.Down(e.rank, e.size)
	sent, got := 0, 0
	want := e.expecting(h)
	for i := range schedule.RingSteps(e.size) {
		step := schedule.RingStep(e.rank, e.size, i)
		out, in := e.chunk(v, step.Send), e.chunk(v, step.Recv)
		for k := range max(out.Segments(blocks), in.Segments(blocks)) {
			if k < out.Segments(blocks) {
				e.postSegment(h, up, sent, v, out, k, blocks)
				sent++
			}
			if k < in.Segments(blocks) {
				e.in = segment(e.in[:0], v, in, k, blocks)
				if err := e.take(want, v, down, got, step.Fold); err != nil {
					return err
				}
				got++
			}
		}
		if i == e.size-2 {
			e.finish(h, v, e.chunk(v, schedule.Owned(e.rank, e.size)))
		}
	}
	return nil
}

// take receives one segment into the places e.in, or folds it with what is
// there.
func (e *hostEngine) take(h *Header, v Vector, from, part int, combine bool) error {
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

// oneShotReduce sends the whole vector to every rank; each folds all of them
// for itself, in ring order.
func (e *hostEngine) oneShotReduce(h *Header, v Vector) error {
	mine := v.bytes()
	all := e.room(e.size * len(mine))
	operand := func(rank int) []byte { return all[rank*len(mine) : (rank+1)*len(mine)] }
	copy(operand(e.rank), mine)
	want := e.expecting(h)
	for i := 1; i < e.size; i++ {
		to, from := schedule.Pair(e.rank, e.size, i)
		e.post(h, to, 0, mine)
		e.in = append(e.in[:0], operand(from))
		if err := e.receive(want, from, 0, e.in); err != nil {
			return err
		}
	}
	if err := e.out.flush(); err != nil { // mine is overwritten below
		return err
	}
	width := v.dtype.Size()
	e.foldRange(h, v, 0, v.n, operand, func(lo, hi int) []byte { return mine[lo*width : hi*width] })
	return nil
}

// finish does what a reduction does once, after the last operand: the mean's
// multiplication.
func (e *hostEngine) finish(h *Header, v Vector, chunk schedule.Chunk) {
	if h.Call.Op != Mean {
		return
	}
	width := v.dtype.Size()
	for b := range chunk.Blocks() {
		lo, hi := chunk.Block(b)
		e.scale(v.dtype, v.bytes()[lo*width:hi*width])
	}
}

// scale multiplies by 1/size.
func (e *hostEngine) scale(t DType, b []byte) {
	switch t {
	case Float32:
		fold.Scale(elements[float32](b), 1/float32(e.size))
	case Float64:
		fold.Scale(elements[float64](b), 1/float64(e.size))
	}
}

func (e *hostEngine) chunk(v Vector, residue int) schedule.Chunk {
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
