package collective

import "context"

// A Transport carries messages between the ranks of one View. Messages between
// two ranks keep their order. One goroutine may Send while another is in Recv,
// but only one at a time may Send, and only one may Recv. After any error the
// Transport is broken: calls in progress and later calls return the error that
// broke it.
type Transport interface {
	// Send sends a header and the bytes of parts, h.Len in total, to a rank. It
	// may wait until the peer receives. The transport uses parts only until
	// Send returns.
	Send(ctx context.Context, to int, h *Header, parts [][]byte) error
	// Recv waits for the next message from a rank, checks that its header is h
	// and fills parts, h.Len bytes in total. If the message belongs to another
	// call, the error is a *MismatchError and the contents of parts are
	// unspecified.
	Recv(ctx context.Context, from int, h *Header, parts [][]byte) error
	// Abort breaks the transport. It reports the culprit to every peer before
	// it closes, and ends all calls in progress here. Only the first Abort
	// counts.
	Abort(cause *RankError)
	// Close says goodbye to the peers and frees all resources. Calls in
	// progress return ErrClosed. Later calls of Close do nothing.
	Close() error
}
