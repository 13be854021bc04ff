package tcp

import (
	"context"
	"time"
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

// Kill closes all connections without a goodbye, as if the process had died.
func (t *Transport) Kill() { t.closeLinks() }

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
