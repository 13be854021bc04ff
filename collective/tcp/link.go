package tcp

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// A Link is one framed connection to another process: a 64-byte header, then
// the payload, again and again. One goroutine may write while another reads.
type Link struct {
	conn    net.Conn // raw, or TLS over it
	raw     net.Conn // deadlines and the end are those of the TCP connection
	peer    Identity
	purpose Purpose

	out    [collective.HeaderSize]byte
	outs   net.Buffers // what is left of the message that is being written
	frames [][]byte    // the memory of outs
	joined []byte      // of writeSealed
	in     [collective.HeaderSize]byte
	got    int // bytes of in that an earlier Next read before its deadline
}

// Peer is who the other side said it is, and has proved where this process has
// a key. Its Secret is nil.
func (l *Link) Peer() Identity { return l.peer }

// Purpose is what the dialler said the Link is for.
func (l *Link) Purpose() Purpose { return l.purpose }

// RemoteAddr is the other side's address, for logs.
func (l *Link) RemoteAddr() net.Addr { return l.raw.RemoteAddr() }

// Close ends the Link; calls in progress fail. TLS is not told: its goodbye
// could wait for a peer that does not read, and the frames have their own.
func (l *Link) Close() error { return l.raw.Close() }

// interrupt makes calls in progress, and later ones, fail.
func (l *Link) interrupt() { _ = l.raw.SetDeadline(time.Unix(1, 0)) }

// Write sends a header and the bytes of parts in one go. They are not kept.
// When ctx ends in the middle, the Link is useless from then on.
func (l *Link) Write(ctx context.Context, h *collective.Header, parts [][]byte) error {
	defer l.watch(ctx, l.raw.SetWriteDeadline)()
	h.Put(l.out[:])
	return because(ctx, l.write(l.out[:], parts))
}

// writeStripe is Write without a header.
func (l *Link) writeStripe(ctx context.Context, parts [][]byte) error {
	defer l.watch(ctx, l.raw.SetWriteDeadline)()
	return because(ctx, l.write(nil, parts))
}

func (l *Link) write(head []byte, parts [][]byte) error {
	if l.sealed() {
		return l.writeSealed(head, parts)
	}
	l.frames = append(append(l.frames[:0], head), parts...)
	l.outs = l.frames
	_, err := l.outs.WriteTo(l.conn)
	return err
}

// Next reads the next header and its payload. into says where the payload
// goes: parts of together h.Len bytes, or an error, which leaves the payload
// unread in the socket and is returned. A deadline that strikes inside a header
// loses nothing; the next call goes on.
func (l *Link) Next(ctx context.Context, into func(h *collective.Header) ([][]byte, error)) error {
	return l.nextStripe(ctx, func(h *collective.Header) ([][]byte, error) {
		parts, err := into(h)
		if err == nil {
			err = room(h, parts)
		}
		return parts, err
	})
}

// nextStripe is Next where only a part of the payload comes on this Link.
func (l *Link) nextStripe(ctx context.Context, into func(h *collective.Header) ([][]byte, error)) error {
	defer l.watch(ctx, l.raw.SetReadDeadline)()
	n, err := io.ReadFull(l.conn, l.in[l.got:])
	if l.got += n; err != nil {
		return because(ctx, err)
	}
	l.got = 0
	var h collective.Header
	h.Get(l.in[:])
	parts, err := into(&h)
	if err != nil {
		return err
	}
	return because(ctx, l.fill(parts))
}

// readStripe fills parts with what comes next.
func (l *Link) readStripe(ctx context.Context, parts [][]byte) error {
	defer l.watch(ctx, l.raw.SetReadDeadline)()
	return because(ctx, l.fill(parts))
}

func (l *Link) fill(parts [][]byte) error {
	for _, p := range parts {
		if _, err := io.ReadFull(l.conn, p); err != nil {
			return err
		}
	}
	return nil
}

// watch makes the end of ctx end reads or writes, until stop. That is false if
// ctx has ended.
func (l *Link) watch(ctx context.Context, deadline func(time.Time) error) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { _ = deadline(time.Unix(1, 0)) })
}

// because is the reason of ctx where its end was what made err.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
