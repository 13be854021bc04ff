package schedule

// A Step is what one rank does at one moment of a ring algorithm: it sends one
// chunk up the ring and, at the same time, receives another from below.
type Step struct {
	Send, Recv int  // chunk numbers
	Fold       bool // combine what arrives with the own operand; else overwrite it
}

// Up returns the next rank on the ring, to which a rank sends.
func Up(rank, size int) int { return mod(rank+1, size) }

// Down returns the previous rank on the ring, from which a rank receives.
func Down(rank, size int) int { return mod(rank-1, size) }

// RingSteps returns the number of steps of a ring AllReduce: size-1 that reduce
// and scatter, then size-1 that gather.
func RingSteps(size int) int { return 2 * (size - 1) }

// RingStep returns the i-th step of a ring AllReduce (Patarasuk and Yuan,
// 2009).
//
// Chunk c starts at rank c as that rank's operand. Each rank up the ring
// combines it with its own operand, so it is complete at rank c-1. The fold
// began at rank c and went up, which is ring order. Then the chunk goes round
// once more, unchanged.
func RingStep(rank, size, i int) Step {
	if i < size-1 {
		return Step{Send: mod(rank-i, size), Recv: mod(rank-i-1, size), Fold: true}
	}
	i -= size - 1
	return Step{Send: mod(rank+1-i, size), Recv: mod(rank-i, size)}
}

// Owned returns the chunk that is complete on a rank after the reducing half of
// a ring AllReduce.
func Owned(rank, size int) int { return Up(rank, size) }

// GatherStep returns the i-th of the size-1 steps of a ring AllGather, in which
// rank c contributes chunk c.
func GatherStep(rank, size, i int) Step {
	return Step{Send: mod(rank-i, size), Recv: mod(rank-i-1, size)}
}
