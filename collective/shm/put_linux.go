package shm

import "golang.org/x/sys/cpu"

// leastTransfer is how many bytes are worth the start of REP MOVSB.
const leastTransfer = 2 << 10

// put copies to memory that other ranks have read, and hold in their caches. The
// stores of copy fetch each line from there before they overwrite it; a string
// move takes the line over without what is in it, where the processor says that
// such moves are fast.
func put(to, from []byte) {
	if n := min(len(to), len(from)); n >= leastTransfer && cpu.X86.HasERMS {
		transfer(&to[0], &from[0], n)
		return
	}
	copy(to, from)
}
