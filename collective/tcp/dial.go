package tcp

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// handshakeTime is how long a dialler waits for an answer at first. One that
// dials again waits longer.
const handshakeTime = 5 * time.Second

// Dial connects to a process, checks that it is the peer that was meant, and
// says what for. ctx bounds the whole. A refusal is ErrRefused with the
// reason that the other side gave.
func Dial(ctx context.Context, addr string, id Identity, want Peer, purpose Purpose) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("tcp: connecting to %s at %s: %w", want.Name, addr, err)
	}
	l, err := meet(ctx, conn, id, want, purpose)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("tcp: greeting %s at %s: %w", want.Name, addr, err)
	}
	return l, nil
}

// meet is the dialler's half of the handshake. It ends with a byte that says that
// the dialler uses the Link: only then does the other side. So a dialler that has
// given up can dial again, and nobody is left with a Link that ends nowhere.
func meet(ctx context.Context, conn net.Conn, id Identity, want Peer, purpose Purpose) (*Link, error) {
	l := &Link{conn: conn, raw: conn, purpose: purpose}
	stop := l.watch(ctx, conn.SetDeadline)
	err := l.ask(ctx, id, want)
	switch inTime := stop(); {
	case !inTime && !final(err):
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	if _, err := l.conn.Write([]byte{confirmation}); err != nil {
		return nil, err
	}
	tune(conn, purpose.Channel)
	return l, nil
}

// ask says hello and waits for the answer.
func (l *Link) ask(ctx context.Context, id Identity, want Peer) error {
	if err := l.sealTo(ctx, id.Secret, want); err != nil {
		return err
	}
	mine := hello{from: id, want: want, purpose: l.purpose}
	if _, err := l.conn.Write(mine.append(nil)); err != nil {
		return dialFault(err)
	}
	theirs, err := readHello(l.conn)
	meant := theirs.from.Name == want.Name && theirs.from.Nonce == want.Nonce
	switch {
	case err != nil:
		return dialFault(err)
	case theirs.refusal != "" && meant:
		return verdict{fmt.Errorf("%w: %s", ErrRefused, theirs.refusal)}
	case theirs.refusal != "":
		return fmt.Errorf("%w: %s", ErrRefused, theirs.refusal)
	case !meant:
		return fmt.Errorf("%w: %s answered", ErrRefused, theirs.from.Name)
	}
	l.peer = theirs.from
	return nil
}

// confirmed waits until the dialler says that it uses the Link.
func (l *Link) confirmed() error {
	var b [1]byte
	if _, err := io.ReadFull(l.conn, b[:]); err != nil {
		return err
	}
	if b[0] != confirmation {
		return fmt.Errorf("%w: it confirmed with %#x", ErrNotOurs, b[0])
	}
	return nil
}
