package shm

// piece returns where the k-th chunk of a call by copy lies in the vector.
func (r *run) piece(k int) (lo, hi int) {
	chunk := r.t.mem.chunkOf(len(r.in))
	lo = k * chunk
	return lo, min(lo+chunk, len(r.in))
}

// part returns the part that a rank folds of the given number of bytes.
func (r *run) part(bytes, rank int) (lo, hi int) {
	lo, hi = part(bytes/r.width, len(r.t.ranks), rank)
	return lo * r.width, hi * r.width
}

// staged returns where a rank stages the n-th of all chunks.
func (r *run) staged(peer int, n uint64, bytes int) []byte {
	m := r.t.mem
	return m.bytes(m.stage(peer, n)+m.turn(n, bytes, m.slot, len(r.in)), bytes)
}

// result returns where a rank leaves the result of its part of the n-th of all
// chunks.
func (r *run) result(peer int, n uint64, bytes int) []byte {
	m := r.t.mem
	return m.bytes(m.result(peer, n)+m.turn(n, bytes, m.part, len(r.in)), bytes)
}

// stage copies the operands of a chunk to where the others read them. In large calls, that
// also shows how far these are.
func (r *run) stage(k int, n uint64) {
	lo, hi := r.piece(k)
	if len(r.in) < stagingLeast || hi-lo < r.t.streamLeast {
		r.stagePiece(lo, hi, n, r.far())
		return
	}
	r.t.staging.do(hi-lo, func(stream bool) { r.stagePiece(lo, hi, n, stream) })
}

// far reports whether the other ranks seem far in this call.
func (r *run) far() bool {
	if len(r.in) < stagingLeast {
		return r.t.distance.far
	}
	return r.t.staging.far
}

func (r *run) stagePiece(lo, hi int, n uint64, far bool) {
	t, room := r.t, r.staged(r.t.self, n, hi-lo)
	if len(t.ranks) == 2 {
		t.copyForPeers(room, r.in[lo:hi], far)
		return
	}
	a, b := r.part(hi-lo, t.self) // only this rank folds it, from its own vector
	t.copyForPeers(room[:a], r.in[lo:lo+a], far)
	t.copyForPeers(room[b:], r.in[lo+b:hi], far)
}

func (r *run) fold(k int, n uint64) {
	t := r.t
	lo, hi := r.piece(k)
	a, b := 0, hi-lo
	if len(t.ranks) > 2 {
		a, b = r.part(hi-lo, t.self)
	}
	for peer := range t.ranks {
		t.operands[peer] = r.staged(peer, n, hi-lo)[a:b]
	}
	t.operands[t.self] = r.in[lo+a : lo+b]
	own := r.out[lo+a : lo+b]
	if len(t.ranks) == 2 {
		r.sum(lo+a, own)
		return
	}
	result := r.result(t.self, n, b-a)
	if b-a >= t.streamLeast && r.far() {
		r.sum(lo+a, own)
		t.copyForPeers(result, own, true)
		return
	}
	r.sum(lo+a, result)
	copy(own, result)
}

// sum folds the operands, which begin at a byte of the vector.
func (r *run) sum(at int, out []byte) {
	r.t.chain.Range(r.h.Call.DType, r.h.Call.Op, r.at+at/r.width, out, r.t.operands)
}

func (r *run) copyResult(k int, n uint64, peer int) {
	lo, hi := r.piece(k)
	a, b := r.part(hi-lo, peer)
	copy(r.out[lo+a:lo+b], r.result(peer, n, b-a))
}
