package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// segments are the messages that carry one chunk of a vector.
type segments struct {
	v      Vector
	chunk  schedule.Chunk
	blocks int // maximum per message
}

// chunk returns the chunk of a vector with the given residue.
func (e *executor) chunk(v Vector, residue, blocks int) segments {
	return segments{v, schedule.Chunk{Offset: v.arena, Len: v.n, Residue: residue, Size: e.size}, blocks}
}

func (s *segments) count() int { return s.chunk.Segments(s.blocks) }

// appendTo appends the memory of the k-th segment to parts.
func (s *segments) appendTo(parts [][]byte, k int) [][]byte {
	width, mem := s.v.dtype.Size(), s.v.bytes()
	first, last := s.chunk.Segment(k, s.blocks)
	for b := first; b < last; b++ {
		lo, hi := s.chunk.Block(b)
		parts = append(parts, mem[lo*width:hi*width])
	}
	return parts
}

// postSegment sends segment k to a rank, if it exists.
func (e *executor) postSegment(h *Header, to, part int, s *segments, k int) {
	if k >= s.count() {
		return
	}
	m := e.out.slot()
	m.to, m.h = to, *h
	m.parts = s.appendTo(m.parts[:0], k)
	e.submit(m, part)
}
