package secret

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
)

// maxDrain is the maximum number of bytes that Linger reads.
const maxDrain = 64 << 10

// LacksKey is the refusal if only the dialler has a Key.
const LacksKey = "it has no key, and this process has one: give both the same key file"

// IsTLS reports whether b is the beginning of a TLS handshake.
func IsTLS(b []byte) bool { return len(b) > 1 && b[0] == 0x16 && b[1] == 3 }

// IsPlain reports whether a TLS handshake failed because the other side sent hello, the
// beginning of the protocol without TLS, of at least 5 bytes.
func IsPlain(err error, hello string) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header) && string(header.RecordHeader[:]) == hello[:len(header.RecordHeader)]
}

// Refusal returns why a dialler's handshake failed, if that is about keys, identities or
// clocks, so that another attempt would fail in the same way. hello is that of IsPlain.
func Refusal(err error, hello string) (reason error, ok bool) {
	switch {
	case errors.Is(err, ErrOtherKey), errors.Is(err, ErrOtherPeer), errors.Is(err, ErrClock):
		var wrapped *tls.CertificateVerificationError
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return err, true
	case IsPlain(err, hello):
		return errors.New(LacksKey), true
	case Alert(err) != nil:
		return errors.New("it rejected this process's certificate: it has a different key, or its clock differs by more than a day"), true
	}
	return nil, false
}

// Alert returns the TLS alert that the other side sent, if that ended the connection.
func Alert(err error) error {
	var remote *net.OpError
	if errors.As(err, &remote) && remote.Op == "remote error" {
		return remote.Err
	}
	return nil
}

// Linger ends a connection for the other side, which has been refused, and reads what it
// still sends through from, until it has read why. If unread data is left when a
// connection closes, the kernel resets it, and the refusal may be lost.
func Linger(conn net.Conn, from io.Reader) {
	if c, ok := conn.(*net.TCPConn); ok && c.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, from, maxDrain)
	}
}
