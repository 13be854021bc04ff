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
