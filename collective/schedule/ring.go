package schedule

// A Step is what one rank does at one moment of a ring algorithm: it sends one
// chunk up the ring and receives another from below, at the same time.
type Step struct {
	Send, Recv int  // chunk numbers
	Fold       bool // combine what arrives with the own operand; else keep it as it is
}

// Up is the rank that comes after a rank on the ring, to whom it sends.
func Up(rank, size int) int { return mod(rank+1, size) }

// Down is the rank that comes before a rank on the ring, from whom it receives.
func Down(rank, size int) int { return mod(rank-1, size) }

// RingSteps is the number of steps of a ring AllReduce: size-1 that reduce and
// scatter, then size-1 that gather.
func RingSteps(size int) int { return 2 * (size - 1) }

// RingStep is the i-th step of a ring AllReduce (Patarasuk and Yuan, 2009).
//
// Chunk c sets out from rank c as that rank's own operand and is combined with
// one operand at each rank up the ring, so it is complete at rank c-1: the fold
// has begun at rank c and gone up, which is ring order. From there it goes
// round once more, unchanged.
func RingStep(rank, size, i int) Step {
	if i < size-1 {
		return Step{Send: mod(rank-i, size), Recv: mod(rank-i-1, size), Fold: true}
	}
	i -= size - 1
	return Step{Send: mod(rank+1-i, size), Recv: mod(rank-i, size)}
}

// Owned is the chunk that is complete on a rank after the reducing half of a
// ring AllReduce.
func Owned(rank, size int) int { return Up(rank, size) }

// GatherStep is the i-th of the size-1 steps of a ring AllGather, in which
// chunk c is what rank c gives.
func GatherStep(rank, size, i int) Step {
	return Step{Send: mod(rank-i, size), Recv: mod(rank-i-1, size)}
}
