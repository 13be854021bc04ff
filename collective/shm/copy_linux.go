package shm

// copyForPeers copies to memory that other ranks have read and hold in their
// caches. Ordinary stores fetch each line from there before they overwrite it. A
// string move takes ownership of a line without fetching its contents, but has a
// start-up cost. Non-temporal stores, which bypass the caches, take longer, unless
// the other ranks are far; see distance.
func (d *reduction) copyForPeers(to, from []byte, far bool) {
	if len(from) < d.copyLeast {
		copy(to, from)
	} else {
		d.copyLarge(to, from, far)
	}
}

// copyLarge is copyForPeers from copyLeast on.
func (d *reduction) copyLarge(to, from []byte, far bool) {
	n := min(len(to), len(from))
	switch {
	case n >= d.streamLeast && far:
		moveStream(&to[0], &from[0], n)
	case n >= d.stringLeast:
		moveString(&to[0], &from[0], n)
	default:
		copy(to, from)
	}
}
