package store

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective/secret"
)

// dial connects to a server. The error is ErrRefused if another attempt would end in the
// same way.
func dial(ctx context.Context, addr string, id *secret.Identity) (net.Conn, error) {
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := expireOnCancel(ctx, raw)
	conn := raw
	if id != nil {
		secured := tls.Client(raw, id.Client(serverName, serverNonce))
		conn, err = secured, tlsError(secured.HandshakeContext(ctx))
	}
	if err == nil {
		err = greet(conn)
	}
	if inTime := stop(); err == nil && !inTime {
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// greet agrees on the protocol.
func greet(conn net.Conn) error {
	if _, err := conn.Write(hello()); err != nil {
		return tlsError(err)
	}
	theirs := make([]byte, helloSize)
	if _, err := io.ReadFull(conn, theirs); err != nil {
		return tlsError(err)
	}
	if !bytes.HasPrefix(theirs, []byte(magic)) {
		return fmt.Errorf("%w: it is not a store of ringtrain", ErrRefused)
	}
	r, err := readReply(conn, maxHandshake)
	if err == nil {
		err = r.err(request{})
	}
	if err == nil && !bytes.Equal(theirs, hello()) {
		err = fmt.Errorf("%w: it speaks version %q of the protocol, and this process version %c: run the same ringtrain on both sides", ErrRefused, theirs[len(magic)], protocol)
	}
	return err
}

// readReply reads a reply.
func readReply(conn net.Conn, limit int) (reply, error) {
	b, err := readMessage(conn, limit)
	if err != nil {
		return reply{}, err
	}
	r, err := decodeReply(b)
	if err != nil {
		return reply{}, fmt.Errorf("%w: its reply is %w", ErrRefused, err)
	}
	return r, nil
}

// tlsError returns ErrRefused, with what to do next, if an error during a handshake is about
// keys, identities or clocks.
func tlsError(err error) error {
	var header tls.RecordHeaderError
	reason, refused := secret.Refusal(err, magic)
	switch {
	case errors.Is(reason, secret.ErrOtherKey):
		return fmt.Errorf("%w: %w; give both the same key file", ErrRefused, reason)
	case errors.Is(reason, secret.ErrOtherPeer):
		return fmt.Errorf("%w: %w; check the address of the store", ErrRefused, reason)
	case refused: // the reason says what to do
		return fmt.Errorf("%w: %w", ErrRefused, reason)
	case errors.As(err, &header):
		return fmt.Errorf("%w: it is not a store of ringtrain", ErrRefused)
	}
	return err
}

// expireOnCancel makes reads and writes fail once ctx ends, until stop, which reports
// whether it came before the end.
func expireOnCancel(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// clause returns the part of a network error that a user understands.
func clause(err error) error {
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Err != nil:
		err = op.Err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it hung up")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "connect: "))
}
