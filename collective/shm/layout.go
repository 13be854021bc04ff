package shm

import "unsafe"

// Bytes of the pieces of the memory.
const (
	lineBytes   = 64
	pairBytes   = 2 * lineBytes // what the processor fetches together
	pageBytes   = 4096
	inlineBytes = lineBytes - 24 // shown beside the flag, the digest and the core
	smallBytes  = 8 << 10        // shown with the call; more is staged
	leastChunk  = 32 << 10       // of a large vector
	stageSlots  = 4              // no fewer, see course
	mostRings   = 8 << 20        // of all rings together, while a ring has at least
	leastRing   = 8 << 10
	mostRing    = 256 << 10
)

// What a rank says of how to get at its memory, see door.
const (
	tokenBytes = 32
	doorBytes  = tokenBytes + 2*nameBytes // of what one needs to know to call
	nameBytes  = 16
)

// chunkBytes of a vector are staged at a time: they stay in the caches until
// they are folded.
func chunkBytes(size int) int {
	if size == 2 {
		return 128 << 10
	}
	return 256 << 10
}

// A layout says where in the memory of so many ranks what lies. It depends on
// nothing else, so all ranks have the same.
type layout struct {
	size  int
	chunk int
	part  int // bytes of a chunk that a rank folds at most, among three ranks and more
	ring  int // bytes of the data of one ring, a power of two

	ranks, rings, smalls, stages, results int // where the first of each begins
	total                                 int
}

// The lines of a rank, each in a pair of its own, because the processor fetches
// two together: for even and for odd calls one with the flag and the data; for
// each other flag one; one for who sleeps, one for the proof that this rank is
// here, one for how to get at its memory; and for even and for odd calls the header, which others seldom read.
const (
	atShown    = 0
	atFlags    = 2 * pairBytes                      // staged and those after it
	atSleep    = atFlags + (int(flags)-1)*pairBytes // the bell, and how many sleep
	atProof    = atSleep + pairBytes
	atDoor     = atProof + pairBytes
	atHeader   = atDoor + pairBytes
	rankBytes  = atHeader + 2*pairBytes
	atTail     = pairBytes // of a ring: the head, the tail, the data
	atRingData = 2 * pairBytes
)

func newLayout(size int) layout {
	l := layout{size: size, chunk: chunkBytes(size), ring: mostRing}
	pairs := size * (size - 1)
	for l.ring > leastRing && pairs*l.ring > mostRings {
		l.ring /= 2
	}
	page := func(n int) int { return (n + pageBytes - 1) / pageBytes * pageBytes }
	l.rings = page(size * rankBytes)
	l.smalls = page(l.rings + size*size*(atRingData+l.ring))
	l.stages = page(l.smalls + size*2*smallBytes)
	l.results = l.stages + size*stageSlots*l.chunk
	l.total = l.results
	if size > 2 {
		l.part = page(l.chunk/size + 8*lineBytes)
		l.total += size * stageSlots * l.part
	}
	return l
}

// flag is where a rank's flag lies; shown has one for even calls and one for
// odd ones.
func (l layout) flag(rank int, f flag, parity int) int {
	at := l.ranks + rank*rankBytes
	if f == shown {
		return at + atShown + parity*pairBytes
	}
	return at + atFlags + int(f-1)*pairBytes
}

// left is where a rank says that its last call has failed. It lies in the line of
// folded, which the others look at anyway.
func (l layout) left(rank int) int { return l.flag(rank, folded, 0) + 8 }

func (l layout) digest(rank, parity int) int { return l.flag(rank, shown, parity) + 8 }
func (l layout) core(rank, parity int) int   { return l.flag(rank, shown, parity) + 16 }
func (l layout) inline(rank, parity int) int { return l.flag(rank, shown, parity) + 24 }
func (l layout) header(rank, parity int) int {
	return l.ranks + rank*rankBytes + atHeader + parity*pairBytes
}
func (l layout) sleep(rank int) int         { return l.ranks + rank*rankBytes + atSleep }
func (l layout) proof(rank int) int         { return l.ranks + rank*rankBytes + atProof }
func (l layout) door(rank int) int          { return l.ranks + rank*rankBytes + atDoor }
func (l layout) small(rank, parity int) int { return l.smalls + (2*rank+parity)*smallBytes }

// stage is where a rank stages the n-th of all chunks.
func (l layout) stage(rank int, n uint64) int {
	return l.stages + (rank*stageSlots+int(n%stageSlots))*l.chunk
}

// result is where a rank leaves its part of the n-th of all chunks. It lies
// apart from where it stages: chunks differ in length, so what was a result in
// one may be an operand in a later one, while others still read the result.
func (l layout) result(rank int, n uint64) int {
	return l.results + (rank*stageSlots+int(n%stageSlots))*l.part
}

func (l layout) lane(from, to int) int { return l.rings + (from*l.size+to)*(atRingData+l.ring) }

// part is the part [lo, hi) of n elements that a rank folds.
func part(n, size, rank int) (lo, hi int) {
	each := ((n+size-1)/size + lineBytes - 1) / lineBytes * lineBytes
	return min(rank*each, n), min((rank+1)*each, n)
}

// bytesOf is memory that is aligned for every element type.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}
