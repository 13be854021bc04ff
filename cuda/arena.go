package cuda

import "fmt"

// arenaAlign is where pieces of an Arena begin, as memory of the driver does:
// wide loads and cuBLASLt's fast kernels ask for 16, and 256 keeps neighbours
// out of each other's cache lines.
const arenaAlign = 256

// An Arena hands out pieces of one range of device memory, one after the other,
// so that a step can be planned, and then captured, without asking the driver.
// It owns nothing: its creator frees the range.
type Arena struct {
	base             Ptr
	size, used, most int
}

// NewArena divides size bytes at base, which is a multiple of 256.
func NewArena(base Ptr, size int) *Arena { return &Arena{base: base, size: size} }

// Alloc is the next piece. The error says what is used, and has ErrOutOfMemory.
func (a *Arena) Alloc(bytes int) (Ptr, error) {
	room := a.size - a.used
	if bytes < 0 || bytes > room {
		return 0, fmt.Errorf("an arena of %d bytes, %d of them used, has no room for %d: %w", a.size, a.used, bytes, ErrOutOfMemory)
	}
	p := a.base + Ptr(a.used)
	a.used += min((bytes+arenaAlign-1)/arenaAlign*arenaAlign, room)
	a.most = max(a.most, a.used)
	return p, nil
}

// Used is how many bytes are handed out. It is also a place to come back to.
func (a *Arena) Used() int { return a.used }

// Most is the largest that Used has been.
func (a *Arena) Most() int { return a.most }

// Rewind takes back all pieces since Used was the given number.
func (a *Arena) Rewind(used int) { a.used = min(a.used, max(used, 0)) }
