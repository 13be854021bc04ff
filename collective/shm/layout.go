package shm

import (
	"unsafe"

	"github.com/ringtrain/ringtrain/collective/calibration"
)

// Sizes in the shared memory, in bytes.
const (
	lineBytes   = 64
	pairBytes   = 2 * lineBytes // the processor fetches two lines together
	pageBytes   = 4096
	inlineBytes = lineBytes - 24     // for data, after the flag, the digest and the core
	stageSlots  = calibration.Stages // see steps; fewer are not enough
	mostRings   = 8 << 20            // limit for all rings together, if that leaves each leastRing
	leastRing   = 8 << 10
	mostRing    = 1 << 20 // so long that the reader's nearest cache no longer holds what is overwritten
)

// The address of an fdServer.
const (
	tokenBytes   = 32
	nameBytes    = 16
	addressBytes = tokenBytes + 2*nameBytes // the token, and the socket's name in hexadecimal
)

// A layout says where everything lies in the memory that size ranks share. It
// depends only on size and on the chunks that the ranks of a host have chosen, so all
// ranks have the same layout.
type layout struct {
	size  int
	chunk int // bytes of a vector that are staged at a time; see stageIn and chunkOf
	slot  int // bytes between two stages of a rank
	part  int // maximum bytes of a chunk that a rank folds, with three ranks or more
	ring  int // data bytes of one ring, a power of two

	rotateMost int // maximum bytes of a call whose chunk does not always lie at the beginning of its slot

	ranks, rings, smalls, stages, results int // offset of the first of each
	total                                 int
}

// The lines of a rank, each in a pair of its own:
//
//   - two call slots, for even and for odd calls: the flag shown, the digest, the
//     core and the inline data
//   - one line for each other flag
//   - the doorbell, the number of sleepers, and the core of the last longer wait
//   - the proof that this rank has mapped the memory, and its probe
//   - the address of its fdServer
//   - the headers of even and of odd calls, which other ranks seldom read
//
// Before the first rank are the choices of the host, see region.choose, and two words
// with which ranks measure how long a sleeper takes to wake.
const (
	atWakeUp   = pairBytes
	atAwake    = atWakeUp + lineBytes
	atRanks    = 2 * pairBytes
	atShown    = 0
	atFlags    = 2 * pairBytes                      // the other flags, from staged on
	atSleep    = atFlags + (int(flags)-1)*pairBytes // the doorbell and the number of sleepers
	atProof    = atSleep + pairBytes
	atServer   = atProof + pairBytes
	atHeader   = atServer + pairBytes
	rankBytes  = atHeader + 2*pairBytes
	atTail     = pairBytes // within a ring: the head, the tail, the data
	atRingData = 2 * pairBytes
)

func newLayout(size int) layout {
	l := layout{size: size, ranks: atRanks, ring: mostRing}
	pairs := size * (size - 1)
	for l.ring > leastRing && pairs*l.ring > mostRings {
		l.ring /= 2
	}
	l.rings = pages(atRanks + size*rankBytes)
	l.smalls = pages(l.rings + pairs*(atRingData+l.ring))
	l.stages = pages(l.smalls + size*2*calibration.MostSmall)
	l.total = l.stageIn(calibration.MostChunk)
	c := calibration.Default(size)
	l.stageIn(c.Chunk)
	l.rotateMost = c.RotateMost
	return l
}

// stageIn sets the size of chunks, and returns where the last result ends. The ranks
// change it only when none of them uses the stages.
func (l *layout) stageIn(chunk int) (end int) {
	l.chunk, l.slot, l.part = chunk, chunk, 0
	if l.size > 2 {
		l.slot = calibration.MostChunk
		l.part = pages(l.slot/l.size + 8*lineBytes)
	}
	l.results = l.stages + l.size*stageSlots*l.slot
	return l.results + l.size*stageSlots*l.part
}

// chunkOf returns how much of a vector is staged at a time. With three ranks or more,
// ranks wait for each other twice in every chunk, so a vector that fits is one chunk.
// Longer vectors leave more of the cache to the ranks with smaller chunks.
func (l *layout) chunkOf(bytes int) int {
	if l.size > 2 && bytes <= calibration.MostChunk {
		return calibration.MostChunk
	}
	return l.chunk
}

// pages rounds a number of bytes up to whole pages.
func pages(n int) int { return (n + pageBytes - 1) / pageBytes * pageBytes }

// flag returns where a rank's flag lies. shown is two words, one for even calls
// and one for odd calls.
func (l *layout) flag(rank int, f flag, parity int) int {
	at := l.ranks + rank*rankBytes
	if f == shown {
		return at + atShown + parity*pairBytes
	}
	return at + atFlags + int(f-1)*pairBytes
}

// withdrawn returns where a rank counts its calls that have failed. It shares the
// line of folded, which the others read anyway.
func (l *layout) withdrawn(rank int) int { return l.flag(rank, folded, 0) + 8 }

func (l *layout) digest(rank, parity int) int { return l.flag(rank, shown, parity) + 8 }
func (l *layout) core(rank, parity int) int   { return l.flag(rank, shown, parity) + 16 }
func (l *layout) inline(rank, parity int) int { return l.flag(rank, shown, parity) + 24 }
func (l *layout) header(rank, parity int) int {
	return l.ranks + rank*rankBytes + atHeader + parity*pairBytes
}
func (l *layout) sleep(rank int) int         { return l.ranks + rank*rankBytes + atSleep }
func (l *layout) proof(rank int) int         { return l.ranks + rank*rankBytes + atProof }
func (l *layout) serverAddress(rank int) int { return l.ranks + rank*rankBytes + atServer }
func (l *layout) small(rank, parity int) int {
	return l.smalls + (2*rank+parity)*calibration.MostSmall
}

// stage returns where a rank's slot for the n-th of all chunks lies.
func (l *layout) stage(rank int, n uint64) int {
	return l.stages + (rank*stageSlots+int(n%stageSlots))*l.slot
}

// turn returns where in a slot of some room the n-th of all chunks lies, or a rank's part of its
// result. The only chunk of a short call lies in different places in turn. So a rank writes where
// the others have not read for long: what they still hold in their nearest caches takes longer
// to overwrite. Chunks of longer calls stay in one place: their size is chosen so that all stages
// of the ranks of one core fit into its caches.
func (l *layout) turn(n uint64, bytes, room, call int) int {
	each := pages(max(1, bytes)) // a rank may have no part of a short chunk
	if call > min(l.rotateMost, l.chunkOf(call)) || each > room/2 {
		return 0
	}
	return int(n/stageSlots%uint64(room/each)) * each
}

// result returns where a rank's slot for its part of the n-th of all chunks lies. It is
// separate from the stage. Chunks differ in length, so a result in the stage
// could overlap an operand of a later chunk while others still read the result.
func (l *layout) result(rank int, n uint64) int {
	return l.results + (rank*stageSlots+int(n%stageSlots))*l.part
}

// ringAt returns where the ring from one rank to another lies.
func (l *layout) ringAt(from, to int) int {
	if to > from {
		to--
	}
	return l.rings + (from*(l.size-1)+to)*(atRingData+l.ring)
}

// part returns the part [lo, hi) of n elements that a rank folds.
func part(n, size, rank int) (lo, hi int) {
	each := ((n+size-1)/size + lineBytes - 1) / lineBytes * lineBytes
	return min(rank*each, n), min((rank+1)*each, n)
}

// bytesOf returns memory that is aligned for every element type.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}
