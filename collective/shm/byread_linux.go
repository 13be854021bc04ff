package shm

// readPiece returns where the k-th chunk of a rank's part lies in the vector.
func (r *run) readPiece(peer, k int) (lo, hi int) {
	a, b := r.part(len(r.out), peer)
	each := r.t.choices.ReadChunk
	return min(a+k*each, b), min(a+(k+1)*each, b)
}

// readChunks returns the number of chunks of the longest part.
func (r *run) readChunks() int {
	a, b := r.part(len(r.out), 0)
	each := r.t.choices.ReadChunk
	return (b - a + each - 1) / each
}

// readOperands reads the others' operands of a chunk of this rank's part, and
// folds it.
func (r *run) readOperands(k int) error {
	t := r.t
	lo, hi := r.readPiece(t.self, k)
	if lo == hi {
		return nil
	}
	each := t.choices.ReadChunk
	if need := len(t.ranks) * each; len(t.scratch) < need {
		t.scratch = bytesOf(make([]uint64, need/8))
	}
	for peer := range t.ranks {
		t.operands[peer] = t.scratch[peer*each:][:hi-lo]
		if peer == t.self {
			t.operands[peer] = r.out[lo:hi]
		} else if err := t.readFrom(peer, lo, t.operands[peer]); err != nil {
			return err
		}
	}
	t.chain.Range(r.h.Call.DType, r.h.Call.Op, r.at+lo/r.width, r.out[lo:hi], t.operands)
	return nil
}

// readResult reads the result of a chunk of another rank's part.
func (r *run) readResult(k, peer int) error {
	lo, hi := r.readPiece(peer, k)
	return r.t.readFrom(peer, lo, r.out[lo:hi])
}

// readFrom fills b from an offset of a peer's vector.
func (t *Transport) readFrom(peer, offset int, b []byte) error {
	if err := t.reader.read(t.mem.pid(peer), uintptr(t.locations[peer].addr)+uintptr(offset), b); err != nil {
		return t.unreachable(peer, err)
	}
	return nil
}
