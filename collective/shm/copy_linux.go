package shm

// copyForPeers copies to memory that other ranks have read and hold in their
// caches. Ordinary stores fetch each line from there before they overwrite it. A
// string move takes ownership of a line without fetching its contents, but has a
// start-up time.
func (d *reduction) copyForPeers(to, from []byte) {
	if n := min(len(to), len(from)); n >= d.stringLeast {
		moveString(&to[0], &from[0], n)
		return
	}
	copy(to, from)
}
