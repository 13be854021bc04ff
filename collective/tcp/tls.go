package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"

	"github.com/ringtrain/ringtrain/collective/secret"
)

// wantsKey is the refusal if only this process has a key.
const wantsKey = "it has a key, and this process has none: give both the same key file"

// maxRecord is the maximum payload of a TLS record, in bytes.
const maxRecord = 16 << 10

// errTLS is returned if a TLS handshake arrives instead of a hello.
var errTLS = fmt.Errorf("%w: it uses TLS", ErrNotOurs)

// encrypted reports whether the Link uses TLS.
func (l *Link) encrypted() bool { return l.conn != l.raw }

// dialTLS starts TLS on a dialled Link if this process has a key, and checks that want
// answers.
func (l *Link) dialTLS(ctx context.Context, id *secret.Identity, want Peer) error {
	if id == nil {
		return nil
	}
	conn := tls.Client(l.raw, id.Client(want.Name, want.Nonce))
	err := conn.HandshakeContext(ctx)
	l.conn = conn
	return dialError(err)
}

// acceptTLS starts TLS on an accepted Link if this process has a key, and records the
// dialler's progress. A ringtrain process with no key, or a different one, is told so.
func (l *Link) acceptTLS(ctx context.Context, id *secret.Identity, in *incoming) error {
	if id == nil {
		return nil
	}
	config := id.Server().Clone()
	verify := config.VerifyConnection
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		in.progressed()
		return nil, nil
	}
	config.VerifyConnection = func(cs tls.ConnectionState) error {
		err := verify(cs)
		if err == nil {
			in.progressed()
		}
		return err
	}
	conn := tls.Server(in, config)
	l.conn = conn
	err := conn.HandshakeContext(ctx)
	switch {
	case secret.IsPlain(err, magic):
		refuseInPlaintext(in, wantsKey)
	case errors.Is(err, secret.ErrOtherKey), errors.Is(err, secret.ErrOtherPeer), errors.Is(err, secret.ErrClock):
		secret.Linger(in.Conn, in) // crypto/tls has sent an alert
	}
	return err
}

// checkCertificate returns an error if the peer's hello does not match its certificate.
func (l *Link) checkCertificate(theirs Identity) error {
	conn, ok := l.conn.(*tls.Conn)
	if !ok {
		return nil
	}
	name, nonce, err := secret.Peer(conn.ConnectionState())
	if err != nil {
		return err
	}
	if name != theirs.Name || nonce != theirs.Nonce {
		return fmt.Errorf("it claims to be %s, but its certificate is that of %s", theirs.Name, name)
	}
	return nil
}

// dialError explains why a dialler's handshake failed.
func dialError(err error) error {
	var header tls.RecordHeaderError
	reason, refused := secret.Refusal(err, magic)
	switch alert := secret.Alert(err); {
	case refused && alert != nil:
		return fmt.Errorf("%w: %w (%v)", ErrRefused, reason, alert)
	case refused:
		return fmt.Errorf("%w: %w", ErrRefused, reason)
	case errors.As(err, &header):
		return fmt.Errorf("%w: it sent %q", ErrNotOurs, header.RecordHeader[:])
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errHungUp
	}
	return err
}

// refuseInPlaintext refuses a dialler by a hello without TLS. It reveals nothing but the
// reason, because anybody may be dialling.
func refuseInPlaintext(in *incoming, reason string) {
	refusal := hello{refusal: reason}
	if _, err := in.Write(refusal.append(nil)); err == nil {
		secret.Linger(in.Conn, in)
	}
}

// writeRecords is write over TLS. Every call of crypto/tls's Write starts a new record, so
// it copies short parts together into full records. Of long parts it copies only the two
// ends.
func (l *Link) writeRecords(head []byte, parts [][]byte) error {
	if l.record == nil {
		l.record = make([]byte, 0, maxRecord)
	}
	b := append(l.record[:0], head...)
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
