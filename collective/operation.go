package collective

import (
	"math"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// ExchangeBytes is the maximum that a rank gives to an Exchange by a Reducer, in bytes.
const ExchangeBytes = 16 << 10

// An Operation is one call as an Engine carries it out. A Group allocates it
// once, and passes it by pointer down to the transport. Copying a value whose
// fields were just stored takes longer than storing them: wide loads have to
// wait for narrow stores.
type Operation struct {
	Header              // Job, Epoch and Group are filled in by the engine
	Dst, Src Vector     // may be the same memory
	Counts   []int      // of V operations; else nil
	W        *AllToAllW // has the memory of an AllToAllW; else nil
}

// Memory returns the host memory of Dst and Src; see Vector.Host. Unlike Vector's own
// methods, the methods of an Operation copy no Vector.
func (o *Operation) Memory() (dst, src []byte) {
	dst = o.Dst.memory()
	if o.inPlace() { // as usual; a small call notices the difference
		return dst, dst
	}
	return dst, o.Src.memory()
}

// inPlace reports whether Dst and Src, which are in host memory, are the same.
func (o *Operation) inPlace() bool { return o.Src.host == o.Dst.host && o.Src.n == o.Dst.n }

// Elements returns the offset of Src in its arena, in elements, and the size of an
// element in bytes.
func (o *Operation) Elements() (arena, width int) { return o.Src.arena, o.Src.dtype.Size() }

// most returns how many bytes a rank of an operation without Counts and W gives at most, among
// size ranks.
func (o *Operation) most(size int) int {
	if o.Call.Kind == KindScatter { // only the root's Src has all pieces
		return size * o.Dst.n * o.Dst.dtype.Size()
	}
	return o.Src.n * o.Src.dtype.Size()
}

// mark marks the call as one that the transport carries out in shared memory, in which a rank
// shows at most this many bytes.
func (o *Operation) mark(bytes int) {
	o.Call.Method = uint8(schedule.Shared)
	o.Part, o.Len = 0, uint32(min(uint64(bytes), math.MaxUint32))
}

// set fills in everything but Counts and W.
func (o *Operation) set(seq, step uint64, c *Call, dst, src *Vector) {
	o.Seq, o.Step, o.Part, o.Len = seq, step, 0, 0
	o.Call.set(c)
	o.Dst.set(dst)
	o.Src.set(src)
	o.Counts, o.W = nil, nil
}
