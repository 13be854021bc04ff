package collective

import (
	"math"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// directReduce is an AllReduce in which rank r owns chunk r. Every rank sends
// the owner its operands. The owner folds them in ring order and sends the
// result to all.
func (e *executor) directReduce(h *Header, v Vector, blocks int) error {
	want := e.expecting(h)
	own := e.chunk(v, e.rank, blocks)
	most := 0
	for r := range e.size {
		theirs := e.chunk(v, r, blocks)
		most = max(most, theirs.count())
	}
	for k := range most {
		var all []byte // all ranks' operands of one segment of the own chunk, each bytes per rank
		each := 0
		if k < own.count() {
			e.in = own.appendTo(e.in[:0], k)
			each = sum(e.in)
			all = e.room(e.size * each)
			copyParts([][]byte{all[e.rank*each : (e.rank+1)*each]}, e.in)
		}
		for i := 1; i < e.size; i++ {
			to, from := schedule.Pair(e.rank, e.size, i)
			theirs := e.chunk(v, to, blocks)
			e.postSegment(h, to, k, &theirs, k)
			if k < own.count() {
				if err := e.receive(want, from, k, all[from*each:(from+1)*each]); err != nil {
					return err
				}
			}
		}
		if k < own.count() {
			e.foldSegment(h, &own, k, all)
		}
	}
	// What arrives below was made from the operands that it overwrites, so those have left.
	for k := range most {
		for i := 1; i < e.size; i++ {
			to, from := schedule.Pair(e.rank, e.size, i)
			e.postSegment(h, to, most+k, &own, k)
			theirs := e.chunk(v, from, blocks)
			if k >= theirs.count() {
				continue
			}
			e.in = theirs.appendTo(e.in[:0], k)
			if err := e.receiveParts(want, from, most+k, e.in); err != nil {
				return err
			}
		}
	}
	return nil
}

// foldSegment folds the k-th segment of the own chunk into its vector. all
// holds every rank's operands of that segment, in rank order.
func (e *executor) foldSegment(h *Header, own *segments, k int, all []byte) {
	first, last := own.chunk.Segment(k, own.blocks)
	at, width, each := 0, own.v.dtype.Size(), len(all)/e.size
	for b := first; b < last; b++ {
		lo, hi := own.chunk.Block(b)
		n := (hi - lo) * width
		e.operands = e.operands[:0]
		for i := range e.size {
			r := (own.chunk.Residue + i) % e.size
			e.operands = append(e.operands, all[r*each+at:r*each+at+n])
		}
		e.chain.Fold(own.v.dtype, h.Call.Op, own.v.bytes()[lo*width:hi*width], e.operands)
		at += n
	}
}

// reduceScatter leaves this rank's piece of the reduction of all ranks' src in
// dst. Pieces lie one after another: rank r's has counts[r] elements, or dst.n
// if counts is nil. The bits are those of AllReduce.
func (e *executor) reduceScatter(h *Header, dst, src Vector, counts []int) error {
	width, per := src.dtype.Size(), schedule.PlanGather(e.size, src.n, src.dtype.Size(), false).Segment
	h.Call.Method = uint8(schedule.Direct)
	want := e.expecting(h)
	piece := func(r int) (lo, n int) { return place(counts, dst.n, r) }
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

// foldRange folds all ranks' elements into dst. They begin at index at of their
// arena; operand(r) holds those of rank r.
func (e *executor) foldRange(h *Header, at int, dst []byte, operand func(rank int) []byte) {
	e.operands = e.operands[:0]
	for r := range e.size {
		e.operands = append(e.operands, operand(r))
	}
	e.chain.Range(h.Call.DType, h.Call.Op, at, dst, e.operands)
}

// reduce leaves the reduction of all ranks' src in dst on the root.
func (e *executor) reduce(h *Header, dst, src Vector) error {
	width := src.dtype.Size()
	per := schedule.PlanGather(e.size, src.n, width, false).Segment
	root, want, err := e.rooted(h)
	if err != nil {
		return err
	}
	for lo, part := 0, 1; lo < src.n; lo, part = lo+per, part+1 {
		hi := min(lo+per, src.n)
		mine := src.bytes()[lo*width : hi*width]
		if e.rank != root {
			e.post(h, root, part, mine)
			continue
		}
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

// place returns the first element and the length of a rank's piece:
// counts[rank] elements, or each if counts is nil.
func place(counts []int, each, rank int) (lo, n int) {
	if counts == nil {
		return rank * each, each
	}
	for _, c := range counts[:rank] {
		lo += c
	}
	return lo, counts[rank]
}

// digestCounts returns the FNV-1a hash by which ranks compare the counts of a V
// operation. 0 stands for equal pieces.
func digestCounts(counts []int) uint32 {
	if counts == nil {
		return 0
	}
	h := uint32(2166136261)
	for _, c := range counts {
		for shift := 0; shift < 64; shift += 8 {
			h = (h ^ uint32(c>>shift)&math.MaxUint8) * 16777619
		}
	}
	return h
}
