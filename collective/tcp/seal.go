package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/ringtrain/ringtrain/collective/secret"
)

// What either side of a Link is told when only one of them has a key.
const (
	wantsKey = "it has a key, and this process has none: give both the same key file"
	lacksKey = "it has no key, and this process has one: give both the same key file"
)

// maxRecord is how many bytes of payload TLS puts into one record.
const maxRecord = 16 << 10

// maxDrain is how much of what a dialler that is refused has still sent is
// read, so that the refusal is not lost with the connection.
const maxDrain = 64 << 10

// errSealed is returned where a hello was awaited and TLS came.
var errSealed = fmt.Errorf("%w: it began with TLS", ErrNotOurs)

// isTLS reports whether bytes from outside are the beginning of a TLS record
// of a handshake.
func isTLS(b []byte) bool { return len(b) > 1 && b[0] == 0x16 && b[1] == 3 }

// sealed reports whether the Link is under TLS.
func (l *Link) sealed() bool { return l.conn != l.raw }

// sealTo puts a dialled Link under TLS, if this process has a key, and makes
// sure that want answers.
func (l *Link) sealTo(ctx context.Context, id *secret.Identity, want Peer) error {
	if id == nil {
		return nil
	}
	conn := tls.Client(l.raw, id.Client(want.Name, want.Nonce))
	err := conn.HandshakeContext(ctx)
	l.conn = conn
	return dialFault(err)
}

// sealFrom puts an accepted Link under TLS, if this process has a key, and notes
// the visitor's progress. A dialler of ours that has no key, or another, is told.
func (l *Link) sealFrom(ctx context.Context, id *secret.Identity, v *visitor) error {
	if id == nil {
		return nil
	}
	config := id.Server().Clone()
	verify := config.VerifyConnection
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		v.step()
		return nil, nil
	}
	config.VerifyConnection = func(cs tls.ConnectionState) error {
		err := verify(cs)
		if err == nil {
			v.step()
		}
		return err
	}
	conn := tls.Server(v, config)
	l.conn = conn
	err := conn.HandshakeContext(ctx)
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &plain) && string(plain.RecordHeader[:]) == magic[:len(plain.RecordHeader)]:
		refusePlainly(v, wantsKey)
	case errors.Is(err, secret.ErrOtherKey), errors.Is(err, secret.ErrOtherPeer), errors.Is(err, secret.ErrClock):
		linger(v) // an alert says so
	}
	return err
}

// proves says why the peer's hello does not fit its certificate.
func (l *Link) proves(theirs Identity) error {
	conn, ok := l.conn.(*tls.Conn)
	if !ok {
		return nil
	}
	name, nonce, err := secret.Peer(conn.ConnectionState())
	if err != nil {
		return err
	}
	if name != theirs.Name || nonce != theirs.Nonce {
		return fmt.Errorf("it says that it is %s, its certificate says %s", theirs.Name, name)
	}
	return nil
}

// dialFault says in words of this package what a dialler's handshake met.
func dialFault(err error) error {
	var header tls.RecordHeaderError
	var remote *net.OpError
	switch {
	case errors.Is(err, secret.ErrOtherKey), errors.Is(err, secret.ErrOtherPeer), errors.Is(err, secret.ErrClock):
		var verdict *tls.CertificateVerificationError
		if errors.As(err, &verdict) {
			err = verdict.Err
		}
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case errors.As(err, &header) && string(header.RecordHeader[:]) == magic[:len(header.RecordHeader)]:
		return fmt.Errorf("%w: %s", ErrRefused, lacksKey)
	case errors.As(err, &header):
		return fmt.Errorf("%w: it began with %q", ErrNotOurs, header.RecordHeader[:])
	case errors.As(err, &remote) && remote.Op == "remote error": // an alert
		return fmt.Errorf("%w: it does not take this process's certificate: it has another key, or its clock differs by more than a day (%v)", ErrRefused, remote.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errHungUp
	}
	return err
}

// refusePlainly tells a dialler why not, in a hello without TLS, and nothing
// else: it may be anybody.
func refusePlainly(v *visitor, why string) {
	refusal := hello{refusal: why}
	if _, err := v.Write(refusal.append(nil)); err == nil {
		linger(v)
	}
}

// linger keeps a connection until the other side has read why it was turned
// away: to close it while there is something to read would take that back.
func linger(v *visitor) {
	if c, ok := v.Conn.(*net.TCPConn); ok && c.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, v, maxDrain)
	}
}

// writeSealed is Write over TLS, where every call makes records of its own:
// what is small goes together with what is beside it, the rest as it is.
func (l *Link) writeSealed(head []byte, parts [][]byte) error {
	if l.joined == nil {
		l.joined = make([]byte, 0, maxRecord)
	}
	b := append(l.joined[:0], head...)
	for _, p := range parts {
		n := min(maxRecord-len(b), len(p))
		b, p = append(b, p[:n]...), p[n:]
		if len(p) == 0 {
			continue
		}
		if _, err := l.conn.Write(b); err != nil { // a full record
			return err
		}
		b = b[:0]
		if whole := len(p) / maxRecord * maxRecord; whole > 0 {
			if _, err := l.conn.Write(p[:whole]); err != nil {
				return err
			}
			p = p[whole:]
		}
		b = append(b, p...)
	}
	if len(b) == 0 {
		return nil
	}
	_, err := l.conn.Write(b)
	return err
}
