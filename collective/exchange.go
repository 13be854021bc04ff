package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// messages is the number of messages of at most per bytes that n bytes take;
// an empty piece takes none.
func messages(n, per int) int { return (n + per - 1) / per }

// gather leaves in dst, on the root, the src of all ranks in rank order.
func (e *HostEngine) gather(h *Header, dst, src Vector) error {
	each, per := src.Bytes(), schedule.SegmentBytes
	root, want, err := e.rooted(h)
	if err != nil {
		return err
	}
	if e.rank != root {
		for k := range messages(each, per) {
			e.post(h, root, 1+k, src.bytes()[k*per:min((k+1)*per, each)])
		}
		return nil
	}
	copy(dst.bytes()[root*each:], src.bytes())
	for i := 1; i < e.size; i++ {
		_, from := schedule.Pair(e.rank, e.size, i)
		theirs := dst.bytes()[from*each : (from+1)*each]
		for k := range messages(each, per) {
			e.whole[0] = theirs[k*per : min((k+1)*per, each)]
			if err := e.receive(want, from, 1+k, e.whole[:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// scatter leaves in dst, on every rank, its piece of the root's src.
func (e *HostEngine) scatter(h *Header, dst, src Vector) error {
	each, per := dst.Bytes(), schedule.SegmentBytes
	root, want, err := e.rooted(h)
	if err != nil {
		return err
	}
	if e.rank != root {
		for k := range messages(each, per) {
			e.whole[0] = dst.bytes()[k*per : min((k+1)*per, each)]
			if err := e.receive(want, root, 1+k, e.whole[:]); err != nil {
				return err
			}
		}
		return nil
	}
	for i := 1; i < e.size; i++ {
		to, _ := schedule.Pair(e.rank, e.size, i)
		theirs := src.bytes()[to*each : (to+1)*each]
		for k := range messages(each, per) {
			e.post(h, to, 1+k, theirs[k*per:min((k+1)*per, each)])
		}
	}
	copy(dst.bytes(), src.bytes()[root*each:(root+1)*each])
	return nil
}

// allToAll sends piece r of src to rank r and puts what comes from rank r at
// place r of dst. counts is what goes to each rank and then what comes from
// each; nil for equal pieces.
func (e *HostEngine) allToAll(h *Header, dst, src Vector, counts []int) error {
	per, width := schedule.SegmentBytes, src.dtype.Size()
	h.Call.Method = uint8(schedule.Direct)
	want := e.expecting(h)
	var out, in []int
	if counts != nil {
		out, in = counts[:e.size], counts[e.size:]
	}
	piece := func(v Vector, counts []int, r int) []byte {
		lo, n := place(counts, v.n/e.size, r)
		return v.bytes()[lo*width : (lo+n)*width]
	}
	copy(piece(dst, in, e.rank), piece(src, out, e.rank))
	for i := 1; i < e.size; i++ {
		to, from := schedule.Pair(e.rank, e.size, i)
		give, get := piece(src, out, to), piece(dst, in, from)
		if counts != nil { // what two ranks must agree about is only between them
			h.Call.Count, want.Call.Count = uint64(len(give)/width), uint64(len(get)/width)
		}
		// At least one message each way, so that neighbours compare calls.
		sends, gets := max(1, messages(len(give), per)), max(1, messages(len(get), per))
		for k := range max(sends, gets) {
			if k < sends {
				e.post(h, to, k, give[min(k*per, len(give)):min((k+1)*per, len(give))])
			}
			if k < gets {
				e.whole[0] = get[min(k*per, len(get)):min((k+1)*per, len(get))]
				if err := e.receive(want, from, k, e.whole[:]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// exchange is what one rank has to do in a Send, a Recv, or both at once: send
// from rank Call.Root to rank Call.Offset. A nil half is none.
func (e *HostEngine) exchange(send, recv *Operation) error {
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
			e.post(&send.Header, int(send.Call.Offset), k, part(send, k))
		}
		if k < recvs {
			e.whole[0] = part(recv, k)
			if err := e.receive(&recv.Header, int(recv.Call.Root), k, e.whole[:]); err != nil {
				return err
			}
		}
	}
	return nil
}
