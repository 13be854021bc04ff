package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/ringtrain/ringtrain/collective/secret"
)

// A finalRefusal is a refusal by the very process that the dialler wants to reach. It
// would refuse the Link at its other addresses, too.
type finalRefusal struct{ error }

func (r finalRefusal) Unwrap() error { return r.error }

// dialHandshake is the dialler's half of the handshake. Its last byte confirms that the
// dialler uses the Link; only then does the other side use it. So a dialler that has
// given up can dial again, and the other side never keeps a dead Link.
func dialHandshake(ctx context.Context, conn net.Conn, id Identity, want Peer, purpose Purpose) (*Link, error) {
	l := &Link{conn: conn, raw: conn, purpose: purpose}
	stop := expireOnCancel(ctx, conn.SetDeadline)
	err := l.sendHello(ctx, id, want)
	switch inTime := stop(); {
	case !inTime && !final(err):
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	if _, err := l.conn.Write([]byte{confirmation}); err != nil {
		return nil, err
	}
	setSocketOptions(conn, purpose.Channel)
	return l, nil
}

// sendHello sends a hello and reads the answer.
func (l *Link) sendHello(ctx context.Context, id Identity, want Peer) error {
	if err := l.dialTLS(ctx, id.Secret, want); err != nil {
		return err
	}
	mine := hello{from: id, want: want, purpose: l.purpose}
	if _, err := l.conn.Write(mine.append(nil)); err != nil {
		return dialError(err)
	}
	theirs, err := readHello(l.conn)
	wanted := theirs.from.Name == want.Name && theirs.from.Nonce == want.Nonce
	switch {
	case err != nil:
		return dialError(err)
	case theirs.refusal != "" && wanted:
		return finalRefusal{fmt.Errorf("%w: %s", ErrRefused, theirs.refusal)}
	case theirs.refusal != "":
		return fmt.Errorf("%w: %s", ErrRefused, theirs.refusal)
	case !wanted:
		return fmt.Errorf("%w: %s answered instead", ErrRefused, theirs.from.Name)
	}
	l.peer = theirs.from
	return nil
}

// handshake is the accepting half of the handshake. A dialler that has been accepted
// needs no slot. Its Link is used only once it has confirmed; until then it may have
// given up, and dial again.
func (l *Listener) handshake(in *incoming) {
	ctx, cancel := context.WithTimeout(l.ctx, l.limits.total)
	defer cancel()
	link := &Link{conn: in.Conn, raw: in.Conn}
	stop := expireOnCancel(ctx, in.SetDeadline)
	err := l.answerHello(ctx, link, in)
	l.releaseSlot(in)
	if err == nil {
		err = link.readConfirmation()
		<-l.accepted
	}
	if !stop() || err != nil {
		_ = in.Close()
		return
	}
	in.done.Store(true)
	setSocketOptions(in.Conn, link.purpose.Channel)
	l.handler.Accept(link)
}

// answerHello reads a dialler's hello and answers it. A refused dialler that uses the
// protocol learns why; anything else gets no answer. If there is no error, the caller
// must receive from l.accepted.
func (l *Listener) answerHello(ctx context.Context, link *Link, in *incoming) error {
	if err := link.acceptTLS(ctx, l.id.Secret, in); err != nil {
		return err
	}
	var from io.Reader = in
	if link.encrypted() {
		from = link.conn
	}
	theirs, err := readHello(from)
	switch {
	case errors.Is(err, errTLS):
		refuseInPlaintext(in, secret.LacksKey)
		return err
	case err != nil && !errors.Is(err, ErrRefused):
		return err
	case err == nil:
		in.progressed()
		if err = link.checkCertificate(theirs.from); err == nil {
			err = l.check(theirs)
		}
	}
	link.peer, link.purpose = theirs.from, theirs.purpose
	if err != nil {
		if errors.Is(err, errBusy) {
			return err
		}
		mine := hello{from: l.id, purpose: theirs.purpose, refusal: err.Error()}
		if _, sendErr := link.conn.Write(mine.append(nil)); sendErr == nil {
			secret.Linger(in.Conn, in)
		}
		return err
	}
	select {
	case l.accepted <- struct{}{}:
	default:
		return errBusy
	}
	if !l.keep(in) {
		<-l.accepted
		return errBusy
	}
	mine := hello{from: l.id, purpose: theirs.purpose}
	if _, err = link.conn.Write(mine.append(nil)); err != nil {
		<-l.accepted
	}
	return err
}

// check returns why a dialler is refused, or nil.
func (l *Listener) check(theirs hello) error {
	switch {
	case theirs.from.Cluster != l.id.Cluster:
		return fmt.Errorf("this is cluster %q, not %q", l.id.Cluster, theirs.from.Cluster)
	case theirs.want.Name != l.id.Name:
		return fmt.Errorf("this is %s, not %s", l.id.Name, theirs.want.Name)
	case theirs.want.Nonce != l.id.Nonce:
		return fmt.Errorf("%s has been restarted", l.id.Name)
	}
	return l.handler.Allow(theirs.from, theirs.purpose)
}

// readConfirmation waits until the dialler confirms that it uses the Link.
func (l *Link) readConfirmation() error {
	var b [1]byte
	if _, err := io.ReadFull(l.conn, b[:]); err != nil {
		return err
	}
	if b[0] != confirmation {
		return fmt.Errorf("%w: it sent %#x as its confirmation", ErrNotOurs, b[0])
	}
	return nil
}
