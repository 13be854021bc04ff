package collective

import "context"

// A Transport carries messages between the ranks of one View. Messages between
// two ranks keep their order. One goroutine may Send while another does Recv;
// two must not do the same at once. After any error the Transport is broken:
// every call in progress and every later one returns the error that broke it.
type Transport interface {
	// Send sends a header and the bytes of parts, together h.Len, to a rank. It
	// may wait until the peer receives. The parts belong to the transport until
	// Send returns, and not after.
	Send(ctx context.Context, to int, h *Header, parts [][]byte) error
	// Recv waits for the next message from a rank, checks that its header is h
	// and fills parts, together h.Len bytes. A message of another call is a
	// *MismatchError and leaves the parts unspecified.
	Recv(ctx context.Context, from int, h *Header, parts [][]byte) error
	// Abort breaks the transport: it tells every peer who is to blame before it
	// closes, and ends all calls in progress here. Only the first Abort counts.
	Abort(cause *RankError)
	// Close says goodbye and frees everything. Calls in progress return
	// ErrClosed. Closing twice is fine.
	Close() error
}

// A Poster is a Transport that can send in the goroutine of its caller: what
// the network does not take at once leaves while Recv and Flush run.
type Poster interface {
	Transport
	// Posts reports whether Post and Flush are of use. It does not change.
	Posts() bool
	// Post sends a message to a rank and may return before it has left. It keeps
	// neither h nor parts, but the bytes of the parts until Flush has returned.
	Post(to int, h *Header, parts [][]byte) error
	// Flush waits until all that was posted has left.
	Flush(ctx context.Context) error
}

// A Reducer is a Transport that can do some operations by itself, in memory
// that all ranks share. No Send and no Recv is in progress meanwhile. Another
// rank's operation that differs in its Header is a *MismatchError.
type Reducer interface {
	Transport
	// Reduces reports whether the methods below are of use. It does not change,
	// and is the same on all ranks.
	Reduces() bool
	// AllReduce leaves in o.Dst the reduction of all ranks' o.Src, in ring order.
	// The two may be the same memory. Whatever it returns, no other rank writes
	// into that memory afterwards.
	AllReduce(o *Operation) error
	// AllGather leaves in o.Dst the o.Src of every rank, in rank order, if that is
	// at most GatherBytes.
	AllGather(o *Operation) error
	// Barrier returns when every rank has called it.
	Barrier(o *Operation) error
}

// A Shower is a Reducer that can let the others see a call before it is made: what
// the caller does in between costs no time while the others' calls are on their
// way.
type Shower interface {
	Reducer
	// Show shows a Barrier, or an AllReduce in place. The caller makes that call
	// next, with the same o, even if the Transport breaks first: from Show on the
	// other ranks may write into the memory of o, and only the call puts an end to
	// that.
	Show(o *Operation)
}

// GatherBytes is how much a rank gives at most in a Reducer's AllGather.
const GatherBytes = 4 << 10

// An Operation is one call as an Engine carries it out. A Group makes it once,
// and it is handed on by pointer from there to the transport: to copy what has
// just been stored in smaller pieces takes longer than to store it.
type Operation struct {
	Header          // Job, Epoch and Group are filled in by the engine
	Dst, Src Vector // may be the same memory
	Counts   []int  // of V operations
}

// set makes it a call of all.
func (o *Operation) set(seq, step uint64, c *Call, dst, src *Vector, counts []int) {
	o.Seq, o.Step, o.Part, o.Len = seq, step, 0, 0
	o.Call.set(c)
	o.Dst.set(dst)
	o.Src.set(src)
	o.Counts = counts
}

// An Engine does the work of a Group: schedules over a Transport, or NCCL on a
// stream. A Group calls it from one goroutine at a time.
type Engine interface {
	// Reaches reports whether the engine can use the memory of v in place.
	Reaches(v Vector) bool
	// Start begins a call. The Operation, its memory and its counts belong to the
	// engine until Wait returns. Work may be put off until Wait.
	Start(o *Operation) error
	// Wait finishes the calls that were started. The end of ctx breaks the engine,
	// even if it comes after Wait has returned, until another context is given.
	// The error is a *RankError when it knows who is to blame.
	Wait(ctx context.Context) error
	// Abort breaks the engine on every rank and says who is to blame.
	Abort(cause *RankError)
	// Sub is an engine for some ranks of this one, in the order given, of which
	// this rank is one. id tells its messages from others' and is the same on all
	// of them. The two share connections: only one of them works at a time, and
	// the first to break breaks both. It is closed before this one.
	Sub(id uint32, v View, ranks []int) (Engine, error)
	// Close ends the engine; calls in progress return ErrClosed.
	Close() error
}
