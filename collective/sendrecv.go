package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// half is one side of a message between two ranks.
type half struct {
	v        Vector
	from, to int
}

// call returns the Call that both sides make.
func (h half) call() Call {
	return Call{Kind: KindSend, DType: h.v.dtype, Root: uint32(h.from), Offset: uint32(h.to), Count: uint64(h.v.n)}
}

// peer returns the other rank.
func (h half) peer(self int) int {
	if h.from == self {
		return h.to
	}
	return h.from
}

// sendRecv carries out this rank's side of a Send, a Recv, or both at once,
// each from rank Call.Root to rank Call.Offset. A nil operation is left out.
func (c *copier) sendRecv(send, recv *Operation) error {
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
			c.post(&send.Header, int(send.Call.Offset), k, part(send, k))
		}
		if k < recvs {
			if err := c.receive(&recv.Header, int(recv.Call.Root), k, part(recv, k)); err != nil {
				return err
			}
		}
	}
	return nil
}
