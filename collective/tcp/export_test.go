package tcp

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
