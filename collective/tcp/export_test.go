package tcp

import (
	"context"
	"time"
)

// Hurry has a Gate wait less long for an answer, and for a sign of life.
func (g *Gate) Hurry(patience, silence time.Duration) { g.times = times{patience, silence} }

// ListenCrowded is Listen with so few slots that few visitors are a crowd.
func ListenCrowded(ctx context.Context, id Identity, handler Handler, slots int, crowd time.Duration) (*Listener, error) {
	m := defaultManners
	m.slots, m.crowd = slots, crowd
	return listen(ctx, "127.0.0.1:0", id, handler, m)
}

// Kill closes all connections without a goodbye, as the death of the process
// does.
func (t *Transport) Kill() { t.hangUp() }

// KillStream ends one of the connections to a rank.
func (t *Transport) KillStream(rank, stream int) {
	p := &t.peers[rank]
	if p.lanes != nil {
		p.lanes[stream].shut()
		return
	}
	_ = p.bulk[stream].raw.Close()
}

// CutAt has messages cut into stripes of so many bytes at least, until undo.
func CutAt(bytes int) (undo func()) {
	before := leastStripe
	leastStripe = bytes
	return func() { leastStripe = before }
}
