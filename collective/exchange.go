package collective

// Gives reports whether a rank of a call gives bytes to the others: every rank, or only the
// root.
func (c *Call) Gives(rank int) bool {
	return c.Kind != KindBroadcast && c.Kind != KindScatter || rank == int(c.Root)
}

// Finish completes an Exchange on a rank: it fills in o.Dst, if the rank gets a result. given
// is what each rank gives, by rank; what this rank gives may be part of o.Dst.
func (o *Operation) Finish(rank int, given [][]byte, chain *Chain) {
	c, root := &o.Call, int(o.Call.Root)
	dst := o.Dst.memory()
	switch c.Kind {
	case KindBroadcast:
		if rank != root {
			copy(dst, given[root])
		}
	case KindScatter:
		copy(dst, cut(given[root], rank, len(dst)))
	case KindAllToAll:
		each := len(dst) / len(given)
		for r, b := range given {
			copy(cut(dst, r, each), cut(b, rank, each))
		}
	case KindAllGather:
		gatherAll(dst, given)
	case KindGather:
		if rank == root {
			gatherAll(dst, given)
		}
	case KindReduceScatter:
		chain.pieces = chain.pieces[:0]
		for _, b := range given {
			chain.pieces = append(chain.pieces, cut(b, rank, len(dst)))
		}
		chain.reduce(c, o.Src.arena+rank*o.Dst.n, dst, chain.pieces)
		clear(chain.pieces) // it would keep the caller's memory
	case KindReduce:
		if rank == root {
			chain.reduce(c, o.Src.arena, dst, given)
		}
	}
}

// cut returns a rank's piece of b.
func cut(b []byte, rank, each int) []byte { return b[rank*each : (rank+1)*each] }

// gatherAll copies what all ranks give to dst, in rank order. A rank's own may be there
// already.
func gatherAll(dst []byte, given [][]byte) {
	at := 0
	for _, b := range given {
		at += copy(dst[at:], b)
	}
}
