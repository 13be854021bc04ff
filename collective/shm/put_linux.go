package shm

import "golang.org/x/sys/cpu"

// leastTransfer is the number of bytes from which REP MOVSB is worth its
// start-up time.
const leastTransfer = 2 << 10

// put copies to memory that other ranks have read and hold in their caches.
// Ordinary stores fetch each line from there before they overwrite it. A string
// move takes ownership of a line without fetching its contents. put uses one if
// the processor reports fast string moves.
func put(to, from []byte) {
	if n := min(len(to), len(from)); n >= leastTransfer && cpu.X86.HasERMS {
		transfer(&to[0], &from[0], n)
		return
	}
	copy(to, from)
}
