package schedule

// BlockLen is the number of elements of a block. It is part of the definition
// of ring order, so it is not a tuning parameter.
const BlockLen = 4096

// A Chunk is the part of a vector whose blocks have number Residue modulo Size.
// Block b of an arena holds its elements [b*BlockLen, (b+1)*BlockLen); the
// vector covers [Offset, Offset+Len) of the arena.
type Chunk struct {
	Offset, Len   int
	Residue, Size int
}

// Blocks returns the number of blocks of the chunk that the vector touches.
func (c Chunk) Blocks() int {
	if c.Len == 0 {
		return 0
	}
	first, last := c.first(), (c.Offset+c.Len-1)/BlockLen
	if first > last {
		return 0
	}
	return (last-first)/c.Size + 1
}

// Block returns the i-th block of the chunk as a range [lo, hi) of the vector's
// elements.
func (c Chunk) Block(i int) (lo, hi int) {
	at := (c.first()+i*c.Size)*BlockLen - c.Offset
	return max(at, 0), min(at+BlockLen, c.Len)
}

// first returns the number of the chunk's first block.
func (c Chunk) first() int {
	b := c.Offset / BlockLen
	return b + mod(c.Residue-b, c.Size)
}

// Segments returns the number of messages that carry the chunk, each with at
// most the given number of blocks. An empty chunk still takes one empty
// message, so that every rank is heard in every step.
func (c Chunk) Segments(blocks int) int {
	return max(1, (c.Blocks()+blocks-1)/blocks)
}

// Segment returns the range [lo, hi) of the chunk's blocks that the i-th
// message carries.
func (c Chunk) Segment(i, blocks int) (lo, hi int) {
	return min(i*blocks, c.Blocks()), min((i+1)*blocks, c.Blocks())
}

// mod returns the remainder of a/n that is never negative.
func mod(a, n int) int { return ((a % n) + n) % n }
