package shm

import (
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/publish"
)

// A callSlot is where a rank shows a call to the others, in shared memory. Each
// rank has two: one for even calls and one for odd calls.
type callSlot struct {
	shown         *uint64 // the flag: once it has the number of the call, the rest may be read
	digest        *uint64 // of the header
	core          *uint64 // where the rank ran; see cores
	header        []byte
	inline, small []byte // for data of up to inlineBytes, and for more
}

func (r *region) callSlot(rank, parity int) callSlot {
	return callSlot{
		shown:  r.word(r.flag(rank, shown, parity)),
		digest: r.word(r.digest(rank, parity)), core: r.word(r.core(rank, parity)),
		header: r.bytes(r.header(rank, parity), collective.HeaderSize),
		inline: r.bytes(r.inline(rank, parity), inlineBytes),
		small:  r.bytes(r.small(rank, parity), calibration.MostSmall),
	}
}

// data returns where n bytes of a small call are shown.
func (s *callSlot) data(n int) []byte {
	if n <= inlineBytes {
		return s.inline[:n]
	}
	return s.small[:n]
}

// prefetch begins to fetch what a call of n bytes writes here, up to most bytes; see
// calibration.Choices. The other ranks have read it two calls ago, and give it up while
// this rank prepares the call.
func (s *callSlot) prefetch(n, most int) {
	if most == 0 {
		return
	}
	publish.Prefetch(s.inline) // and the flag
	if inlineBytes < n && n <= most {
		publish.Prefetch(s.small[:n])
	}
}

// digest is equal for two headers that match, and almost never for two that do
// not.
func digest(h *collective.Header) uint64 {
	c := &h.Call
	return h.Job*0x9e3779b97f4a7c15 + h.Epoch*0xc2b2ae3d27d4eb4f + h.Seq*0x165667b19e3779f9 +
		(uint64(h.Group)<<32|uint64(c.Kind)<<24|uint64(c.DType)<<16|uint64(c.Op)<<8|uint64(c.Method))*0xd6e8feb86659fd93 +
		(uint64(c.Root)<<32|uint64(c.Offset))*0xff51afd7ed558ccd + c.Count*0xc4ceb9fe1a85ec53 +
		(uint64(h.Part)<<32|uint64(h.Len))*0x87c37b91114253d5
}
