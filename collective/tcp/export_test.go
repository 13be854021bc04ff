package tcp

import (
	"context"
	"net"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// SetTimeouts replaces the timeouts of a Connector.
func (c *Connector) SetTimeouts(answer, silence time.Duration) {
	c.timeouts = timeouts{answer, silence}
}

// ListenLimited is Listen with other limits.
func ListenLimited(ctx context.Context, id Identity, handler Handler, slots int, idle time.Duration) (*Listener, error) {
	lim := defaultLimits
	lim.slots, lim.idle = slots, idle
	return listen(ctx, "127.0.0.1:0", id, handler, lim)
}

// Kill closes all connections without a goodbye, as if the process had died. A dead
// process reports no failure, either: this one could blame the rank whose connection it
// has closed first.
func (t *Transport) Kill() {
	t.fail(collective.ErrLost)
	t.closeLinks()
}

// KillStream closes one of the streams to a rank.
func (t *Transport) KillStream(rank, stream int) {
	p := &t.peers[rank]
	if p.sockets != nil {
		p.sockets[stream].shutdown()
		return
	}
	_ = p.bulk[stream].raw.Close()
}

// SetLeastStripe changes the minimum length of a stripe until undo is called.
func SetLeastStripe(bytes int) (undo func()) {
	before := leastStripe
	leastStripe = bytes
	return func() { leastStripe = before }
}

// Dial connects to a process, checks that it is want, and asks for a Link for purpose. ctx
// limits the whole. If the other side refuses, the error is ErrRefused, with its reason.
func Dial(ctx context.Context, addr string, id Identity, want Peer, purpose Purpose) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := (&net.Dialer{Control: unpaced}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, connectError(want, addr, err)
	}
	l, err := dialHandshake(ctx, conn, id, want, purpose)
	if err != nil {
		_ = conn.Close()
		return nil, handshakeError(want, addr, err)
	}
	return l, nil
}

// Peer returns the identity of the other side.
func (l *Link) Peer() Identity { return l.peer }
