package collective

import "github.com/ringtrain/ringtrain/collective/fold"

// Gives reports whether a rank of a call gives bytes to the others: every rank, or only the
// root.
func (c *Call) Gives(rank int) bool {
	return c.Kind != KindBroadcast && c.Kind != KindScatter || rank == int(c.Root)
}

// Takes reports whether a rank of a call gets bytes from the others: every rank, or only the
// root.
func (c *Call) Takes(rank int) bool {
	return c.Kind != KindGather && c.Kind != KindReduce || rank == int(c.Root)
}

// Rooted reports whether a call has a root.
func (c *Call) Rooted() bool {
	switch c.Kind {
	case KindBroadcast, KindScatter, KindGather, KindReduce:
		return true
	}
	return false
}

// Reduces reports whether a call combines what ranks give.
func (c *Call) Reduces() bool {
	return c.Kind == KindAllReduce || c.Kind == KindReduce || c.Kind == KindReduceScatter
}

// Finish completes an Exchange on a rank: it fills in o.Dst, if the rank gets a result. given
// is what each rank gives, by rank; what this rank gives may be part of o.Dst.
func (o *Operation) Finish(rank int, given [][]byte, chain *Chain) {
	c, dst := &o.Call, o.Dst.memory()
	switch c.Kind {
	case KindReduceScatter:
		chain.pieces = chain.pieces[:0]
		for _, b := range given {
			chain.pieces = append(chain.pieces, cut(b, rank, len(dst)))
		}
		chain.reduce(c, o.Src.arena+rank*o.Dst.n, dst, chain.pieces)
		clear(chain.pieces) // it would keep the caller's memory
	case KindReduce:
		if rank == int(c.Root) {
			chain.reduce(c, o.Src.arena, dst, given)
		}
	default:
		var p Pieces
		o.Taken(&p, rank, len(given))
		for from := p.First; from < p.End; from++ {
			copy(p.To(from), given[from][p.At:])
		}
	}
}

// Pieces are what a rank takes from the ranks First to End-1 in an operation that does not
// reduce: a part of what each of them gives, from index At on.
type Pieces struct {
	First, End, At int

	dst        []byte
	each, step int // bytes of a piece, and from one to the next in dst
}

// Taken sets p to what a rank takes from others, and from itself. p must be zero.
func (o *Operation) Taken(p *Pieces, rank, size int) {
	root := int(o.Call.Root)
	p.dst = o.Dst.memory()
	p.each = len(p.dst)
	switch k := o.Call.Kind; {
	case k == KindBroadcast && rank != root:
		p.First, p.End = root, root+1
	case k == KindScatter:
		p.First, p.End, p.At = root, root+1, rank*p.each
	case k == KindAllGather || k == KindAllToAll || k == KindGather && rank == root:
		p.End, p.each = size, p.each/size
		p.step = p.each
		if k == KindAllToAll {
			p.At = rank * p.each
		}
	}
}

// To returns where the rank puts the piece of rank from.
func (p *Pieces) To(from int) []byte { return p.dst[from*p.step:][:p.each] }

// Copy takes a long piece out of what rank from gives. A rank's own may be in its place.
func (p *Pieces) Copy(from int, given []byte) {
	if to, piece := p.To(from), given[p.At:]; len(to) > 0 && &to[0] != &piece[0] {
		fold.Copy(to, piece[:len(to)])
	}
}

// cut returns a rank's piece of b.
func cut(b []byte, rank, each int) []byte { return b[rank*each : (rank+1)*each] }
