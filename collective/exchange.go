package collective

// Gives reports whether a rank of a call gives bytes to the others: every rank, or only the
// root.
func (c *Call) Gives(rank int) bool {
	return c.Kind != KindBroadcast && c.Kind != KindScatter || rank == int(c.Root)
}

// Finish fills in o.Dst on a rank, if it has a result there, from what all ranks give to the
// call, by rank. It is how a Reducer carries out an Exchange, so the pieces have one length.
// Finish may change the list, but only reads the bytes, some of which may be in o.Dst: what
// the rank itself gives.
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
		for r, b := range given {
			given[r] = cut(b, rank, len(dst))
		}
		o.foldGiven(o.Src.arena+rank*o.Dst.n, dst, given, chain)
	case KindReduce:
		if rank == root {
			o.foldGiven(o.Src.arena, dst, given, chain)
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

// foldGiven folds elements of all ranks, which begin at index at of their arena, into dst.
func (o *Operation) foldGiven(at int, dst []byte, given [][]byte, chain *Chain) {
	if len(given) == 2 && FoldPair(&o.Call, at, dst, given[0], given[1]) {
		return
	}
	chain.Range(o.Call.DType, o.Call.Op, at, dst, given)
}
