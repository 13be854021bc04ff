package collective

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// Kind is the operation of a Call. The numbers are part of the wire format.
// Kinds from 0xf0 are not operations: transports use them for frames of their
// own.
type Kind uint8

// The operations.
const (
	KindAllReduce Kind = iota + 1
	KindBroadcast
	KindAllGather
	KindBarrier
	KindReduceScatter
	KindReduce
	KindGather
	KindScatter
	KindAllToAll
	KindSend // Send, Recv and both halves of SendRecv

	// What follows is sent by Messages, outside of calls.
	KindMessage // a message
	KindEnd     // the rank sends no more messages
)

// String returns the operation's name as NCCL and MPI spell it.
func (k Kind) String() string {
	switch k {
	case KindAllReduce:
		return "AllReduce"
	case KindBroadcast:
		return "Broadcast"
	case KindAllGather:
		return "AllGather"
	case KindBarrier:
		return "Barrier"
	case KindReduceScatter:
		return "ReduceScatter"
	case KindReduce:
		return "Reduce"
	case KindGather:
		return "Gather"
	case KindScatter:
		return "Scatter"
	case KindAllToAll:
		return "AllToAll"
	case KindSend:
		return "Send"
	case KindMessage:
		return "Message"
	case KindEnd:
		return "End"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// outside reports whether the kind belongs to no call.
func (k Kind) outside() bool { return k == KindMessage || k == KindEnd }

// A Call is what all ranks of a group must agree on for one operation. Every
// Header carries it, so two ranks that differ notice and can both print both
// calls.
type Call struct {
	Kind   Kind
	DType  DType
	Op     Op     // reductions only
	Method uint8  // the schedule.Method that the plan chose
	Root   uint32 // the root; the sender of a Send; the tag of a Message; a digest of the counts of a V operation; pairCounts
	Offset uint32 // the vector's offset in its arena; the receiver of a Send
	Count  uint64 // elements that one rank contributes; in V operations, that all ranks contribute
}

// pairCounts is the Root of an AllToAllV or AllToAllW. The Count of its messages is what
// one rank sends to another.
const pairCounts = 1

// String prints the call as a user would write it, e.g. "AllReduce(float32[10],
// sum)".
func (c Call) String() string {
	switch {
	case c.Kind == KindBarrier, c.Kind == KindEnd:
		return c.Kind.String() + "()"
	case c.Kind == KindMessage && c.DType == 0: // a rank waits for any
		return "Next()"
	}
	parts := []string{fmt.Sprintf("%v[%d]", c.DType, c.Count)}
	switch c.Kind {
	case KindSend:
		return fmt.Sprintf("Send(%s, from %d to %d)", parts[0], c.Root, c.Offset)
	case KindMessage:
		return fmt.Sprintf("Message(%s, tag %d)", parts[0], c.Root)
	}
	if c.Reduces() {
		parts = append(parts, c.Op.String())
	}
	if c.Rooted() {
		parts = append(parts, fmt.Sprintf("root %d", c.Root))
	}
	if c.Root != 0 && (c.Kind == KindReduceScatter || c.Kind == KindAllGather) {
		parts = append(parts, fmt.Sprintf("counts %08x", c.Root))
	}
	if c.Offset != 0 {
		parts = append(parts, fmt.Sprintf("at %d", c.Offset))
	}
	return fmt.Sprintf("%v(%s)", c.Kind, strings.Join(parts, ", "))
}

// of returns String as a rank sees the call: the receiver of a Send has called Recv.
func (c *Call) of(rank int) string {
	if c.Kind == KindSend && int(c.Offset) == rank {
		return "Recv" + strings.TrimPrefix(c.String(), "Send")
	}
	return c.String()
}

// sameArguments reports whether two calls differ at most in their Method.
func (c Call) sameArguments(d *Call) bool {
	c.Method = d.Method
	return c == *d
}

// method returns the name of the Method, which String omits.
func (c *Call) method() string {
	if c.Method == 0 {
		return "an engine without plans"
	}
	return schedule.Method(c.Method).String()
}

// set is *c = *d, field by field. See Operation for the reason.
func (c *Call) set(d *Call) {
	c.Kind, c.DType, c.Op, c.Method = d.Kind, d.DType, d.Op, d.Method
	c.Root, c.Offset, c.Count = d.Root, d.Offset, d.Count
}

// HeaderSize is the length of a Header on the wire, in bytes.
const HeaderSize = 64

// A Header precedes every payload. It says which job, View, group and call the
// payload belongs to, and which part of the call's data it is. A receiver
// refuses a header that it does not expect.
type Header struct {
	Job, Epoch uint64
	Seq        uint64 // counts the calls of a group from 1
	Step       uint64 // the trainer's step; see Group.Mark
	Group      uint32 // 0 for the whole View
	Call       Call
	Part       uint32 // number of the message within the call, counted by the sender
	Len        uint32 // payload bytes
}

// Put writes the header in its wire form, little-endian, to b[:HeaderSize].
func (h *Header) Put(b []byte) {
	_ = b[HeaderSize-1]
	le := binary.LittleEndian
	le.PutUint64(b[0:], h.Job)
	le.PutUint64(b[8:], h.Epoch)
	le.PutUint64(b[16:], h.Seq)
	le.PutUint64(b[24:], h.Step)
	le.PutUint32(b[32:], h.Group)
	b[36], b[37], b[38], b[39] = byte(h.Call.Kind), byte(h.Call.DType), byte(h.Call.Op), h.Call.Method
	le.PutUint32(b[40:], h.Call.Root)
	le.PutUint32(b[44:], h.Call.Offset)
	le.PutUint64(b[48:], h.Call.Count)
	le.PutUint32(b[56:], h.Part)
	le.PutUint32(b[60:], h.Len)
}

// Get reads the header from its wire form b[:HeaderSize]. It accepts any 64
// bytes; Match checks what they say.
func (h *Header) Get(b []byte) {
	_ = b[HeaderSize-1]
	le := binary.LittleEndian
	h.Job, h.Epoch = le.Uint64(b[0:]), le.Uint64(b[8:])
	h.Seq, h.Step = le.Uint64(b[16:]), le.Uint64(b[24:])
	h.Group = le.Uint32(b[32:])
	h.Call = Call{
		Kind: Kind(b[36]), DType: DType(b[37]), Op: Op(b[38]), Method: b[39],
		Root: le.Uint32(b[40:]), Offset: le.Uint32(b[44:]), Count: le.Uint64(b[48:]),
	}
	h.Part, h.Len = le.Uint32(b[56:]), le.Uint32(b[60:])
}

// Match compares the header that rank self expected with the one that rank peer
// sent. It returns nil if they match, and otherwise a *MismatchError. The Step
// is only information and may differ.
func (h *Header) Match(got *Header, self, peer int) error {
	if h.same(got) {
		return nil
	}
	return &MismatchError{Self: self, Peer: peer, Mine: *h, Theirs: *got}
}

// same reports whether two headers match.
func (h *Header) same(x *Header) bool {
	return h.Seq == x.Seq && h.Call == x.Call && h.Len == x.Len && h.Part == x.Part && h.Job == x.Job && h.Epoch == x.Epoch && h.Group == x.Group
}

// OfAll reports whether all ranks of the View make the call. If so, its number
// tells how far each rank has come.
func (h *Header) OfAll() bool { return h.Group == 0 && h.Call.Kind < KindSend }
