package gpu

import "github.com/ringtrain/ringtrain/cuda"

// Bytes to ask the driver for at once, unless an allocation needs more.
const (
	leastRange = 1 << 20
	mostRange  = 64 << 20
)

// A pool hands out device memory piece by piece, from ranges that double in size up to
// mostRange. A piece larger than half of that gets a range of its own size, because two
// would not fit into mostRange. The pool frees no range before close, because graphs hold their addresses.
type pool struct {
	device *cuda.Device
	ranges []span
	at     int // index of the range in use
}

// A span is a range and the allocator of its pieces.
type span struct {
	base  cuda.Ptr
	size  int
	arena *cuda.Arena
}

// next returns the next piece, at a multiple of 256 bytes. The same sequence of calls
// after rewind returns the same addresses, once all ranges exist.
func (p *pool) next(bytes int) (cuda.Ptr, error) {
	for ; p.at < len(p.ranges); p.at++ {
		if at, err := p.ranges[p.at].arena.Alloc(bytes); err == nil {
			return at, nil
		}
	}
	least := max(bytes, leastRange)
	size := least
	if len(p.ranges) > 0 && bytes <= mostRange/2 {
		size = max(size, min(2*p.ranges[len(p.ranges)-1].size, mostRange))
	}
	base, err := p.device.Alloc(size)
	if err != nil && size > least { // there may still be room for this piece
		size = least
		base, err = p.device.Alloc(size)
	}
	if err != nil {
		p.at = max(0, len(p.ranges)-1)
		return 0, err
	}
	p.ranges = append(p.ranges, span{base, size, cuda.NewArena(base, size)})
	return p.ranges[p.at].arena.Alloc(bytes)
}

// rewind makes all pieces available again.
func (p *pool) rewind() {
	for _, r := range p.ranges {
		r.arena.Rewind(0)
	}
	p.at = 0
}

func (p *pool) close() error {
	var first error
	for _, r := range p.ranges {
		if err := p.device.Free(r.base); first == nil {
			first = err
		}
	}
	p.ranges, p.at = nil, 0
	return first
}
