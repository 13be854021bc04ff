package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// messages returns the number of messages of at most per bytes that carry n
// bytes. An empty piece takes none.
func messages(n, per int) int { return (n + per - 1) / per }

// gather leaves the src of all ranks, in rank order, in dst on the root.
func (m *mover) gather(h *Header, dst, src Vector) error {
	each, per := src.Bytes(), schedule.SegmentBytes
	root, want, err := m.rooted(h)
	if err != nil {
		return err
	}
	if m.rank != root {
		for k := range messages(each, per) {
			m.post(h, root, 1+k, src.bytes()[k*per:min((k+1)*per, each)])
		}
		return nil
	}
	copy(dst.bytes()[root*each:], src.bytes())
	for i := 1; i < m.size; i++ {
		_, from := schedule.Pair(m.rank, m.size, i)
		theirs := dst.bytes()[from*each : (from+1)*each]
		for k := range messages(each, per) {
			if err := m.receive(want, from, 1+k, theirs[k*per:min((k+1)*per, each)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// scatter leaves each rank's piece of the root's src in its dst.
func (m *mover) scatter(h *Header, dst, src Vector) error {
	each, per := dst.Bytes(), schedule.SegmentBytes
	root, want, err := m.rooted(h)
	if err != nil {
		return err
	}
	if m.rank != root {
		for k := range messages(each, per) {
			if err := m.receive(want, root, 1+k, dst.bytes()[k*per:min((k+1)*per, each)]); err != nil {
				return err
			}
		}
		return nil
	}
	for i := 1; i < m.size; i++ {
		to, _ := schedule.Pair(m.rank, m.size, i)
		theirs := src.bytes()[to*each : (to+1)*each]
		for k := range messages(each, per) {
			m.post(h, to, 1+k, theirs[k*per:min((k+1)*per, each)])
		}
	}
	copy(dst.bytes(), src.bytes()[root*each:(root+1)*each])
	return nil
}

// allToAll sends piece r of src to rank r and stores the piece from rank r at
// place r of dst. counts has the elements sent to each rank, followed by those
// received from each; nil means equal pieces.
func (m *mover) allToAll(h *Header, dst, src Vector, counts []int) error {
	per, width := schedule.SegmentBytes, src.dtype.Size()
	h.Call.Method = uint8(schedule.Direct)
	want := m.expecting(h)
	var out, in []int
	if counts != nil {
		out, in = counts[:m.size], counts[m.size:]
	}
	piece := func(v Vector, counts []int, r int) []byte {
		lo, n := place(counts, v.n/m.size, r)
		return v.bytes()[lo*width : (lo+n)*width]
	}
	copy(piece(dst, in, m.rank), piece(src, out, m.rank))
	for i := 1; i < m.size; i++ {
		to, from := schedule.Pair(m.rank, m.size, i)
		give, get := piece(src, out, to), piece(dst, in, from)
		if counts != nil { // each pair of ranks agrees on its own counts
			h.Call.Count, want.Call.Count = uint64(len(give)/width), uint64(len(get)/width)
		}
		// At least one message each way, so that neighbours compare calls.
		sends, gets := max(1, messages(len(give), per)), max(1, messages(len(get), per))
		for k := range max(sends, gets) {
			if k < sends {
				m.post(h, to, k, give[min(k*per, len(give)):min((k+1)*per, len(give))])
			}
			if k < gets {
				if err := m.receive(want, from, k, get[min(k*per, len(get)):min((k+1)*per, len(get))]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// exchange carries out this rank's side of a Send, a Recv, or both at once,
// each from rank Call.Root to rank Call.Offset. A nil operation is left out.
func (m *mover) exchange(send, recv *Operation) error {
	part := func(o *Operation, k int) []byte {
		b := o.Dst.bytes()
		return b[min(k*schedule.SegmentBytes, len(b)):min((k+1)*schedule.SegmentBytes, len(b))]
	}
	parts := func(o *Operation) int {
		if o == nil {
			return 0
		}
		o.Call.Method = uint8(schedule.Direct)
		return max(1, messages(o.Dst.Bytes(), schedule.SegmentBytes))
	}
	sends, recvs := parts(send), parts(recv)
	for k := range max(sends, recvs) {
		if k < sends {
			m.post(&send.Header, int(send.Call.Offset), k, part(send, k))
		}
		if k < recvs {
			if err := m.receive(&recv.Header, int(recv.Call.Root), k, part(recv, k)); err != nil {
				return err
			}
		}
	}
	return nil
}
