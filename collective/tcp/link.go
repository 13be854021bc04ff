package tcp

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// A Link is one connection to another process, after the handshake. It carries frames:
// a header of 64 bytes and its payload. One goroutine may write while another reads.
type Link struct {
	conn    net.Conn // raw, or TLS over it
	raw     net.Conn // the TCP connection: for deadlines and closing
	peer    Identity // as the other side claims, and has proved if this process has a key; its Secret is nil
	purpose Purpose  // what the dialler wants the Link for

	out     [collective.HeaderSize]byte
	unsent  net.Buffers // the rest of the frame being written
	buffers [][]byte    // the memory of unsent
	record  []byte      // see writeRecords
	in      [collective.HeaderSize]byte
	have    int // bytes of in that an earlier read got before its deadline
}

// RemoteAddr returns the other side's address, for logs.
func (l *Link) RemoteAddr() net.Addr { return l.raw.RemoteAddr() }

// Close closes the Link. Calls in progress fail. It sends no TLS alert, because that
// could block if the peer does not read, and the frames have a goodbye of their own.
func (l *Link) Close() error { return l.raw.Close() }

// interrupt makes calls in progress and later calls fail.
func (l *Link) interrupt() { _ = l.raw.SetDeadline(time.Unix(1, 0)) }

// Write sends a header and the bytes of parts as one frame. It does not keep parts. If
// ctx ends before all is sent, the Link can no longer be used.
func (l *Link) Write(ctx context.Context, h *collective.Header, parts [][]byte) error {
	defer expireOnCancel(ctx, l.raw.SetWriteDeadline)()
	h.Put(l.out[:])
	return orCause(ctx, l.write(l.out[:], parts))
}

// writeStripe is Write without a header.
func (l *Link) writeStripe(ctx context.Context, parts [][]byte) error {
	defer expireOnCancel(ctx, l.raw.SetWriteDeadline)()
	return orCause(ctx, l.write(nil, parts))
}

func (l *Link) write(head []byte, parts [][]byte) error {
	if l.encrypted() {
		return l.writeRecords(head, parts)
	}
	l.buffers = append(append(l.buffers[:0], head), parts...)
	l.unsent = l.buffers
	_, err := l.unsent.WriteTo(l.conn)
	return err
}

// Next reads the next frame. into gets its header and returns where the payload goes,
// h.Len bytes in total. If into returns an error, so does Next, and the payload stays in
// the socket. If a deadline expires inside a header, nothing is lost, and the next call
// reads the rest.
func (l *Link) Next(ctx context.Context, into func(h *collective.Header) ([][]byte, error)) error {
	return l.nextStripe(ctx, func(h *collective.Header) ([][]byte, error) {
		parts, err := into(h)
		if err == nil {
			err = checkLength(h, parts)
		}
		return parts, err
	})
}

// nextStripe is Next for a frame whose payload travels on several Links. into returns
// where the stripe of this Link goes.
func (l *Link) nextStripe(ctx context.Context, into func(h *collective.Header) ([][]byte, error)) error {
	defer expireOnCancel(ctx, l.raw.SetReadDeadline)()
	n, err := io.ReadFull(l.conn, l.in[l.have:])
	if l.have += n; err != nil {
		return orCause(ctx, err)
	}
	l.have = 0
	var h collective.Header
	h.Get(l.in[:])
	parts, err := into(&h)
	if err != nil {
		return err
	}
	return orCause(ctx, l.fill(parts))
}

// readStripe reads a stripe without a header into parts.
func (l *Link) readStripe(ctx context.Context, parts [][]byte) error {
	defer expireOnCancel(ctx, l.raw.SetReadDeadline)()
	return orCause(ctx, l.fill(parts))
}

func (l *Link) fill(parts [][]byte) error {
	for _, p := range parts {
		if _, err := io.ReadFull(l.conn, p); err != nil {
			return err
		}
	}
	return nil
}

// expireOnCancel sets an expired deadline when ctx ends, until stop is called. stop
// returns false if ctx has ended.
func expireOnCancel(ctx context.Context, setDeadline func(time.Time) error) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { _ = setDeadline(time.Unix(1, 0)) })
}

// orCause returns err, or the cause of ctx if that has ended and is why there is an
// error.
func orCause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
