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
