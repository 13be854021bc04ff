package shm

import "golang.org/x/sys/cpu"

// leastStringMove is the number of bytes from which REP MOVSB is worth its
// start-up time.
const leastStringMove = 2 << 10

// copyForPeers copies to memory that other ranks have read and hold in their
// caches. Ordinary stores fetch each line from there before they overwrite it. A
// string move takes ownership of a line without fetching its contents.
// copyForPeers uses one if the processor reports fast string moves.
func copyForPeers(to, from []byte) {
	if n := min(len(to), len(from)); n >= leastStringMove && cpu.X86.HasERMS {
		moveString(&to[0], &from[0], n)
		return
	}
	copy(to, from)
}
