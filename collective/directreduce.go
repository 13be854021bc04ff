package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

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
		var all []byte // all ranks' operands of one segment of this rank's chunk, each bytes per rank
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

// foldSegment folds the k-th segment of this rank's chunk into its vector. all
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
