package cuda

import "fmt"

// arenaAlign is the alignment of pieces in bytes, the same as the driver's. Wide loads
// and cuBLASLt's fast kernels need 16. 256 also keeps neighbours out of each other's
// cache lines.
const arenaAlign = 256

// An Arena hands out pieces of one range of device memory, one after the other, without
// calling the driver, which a capture forbids. It owns nothing: its creator frees the
// range.
type Arena struct {
	base             Ptr
	size, used, most int
}

// NewArena returns an Arena of size bytes at base, which must be a multiple of 256.
func NewArena(base Ptr, size int) *Arena { return &Arena{base: base, size: size} }

// Alloc returns the next piece, at a multiple of 256 bytes. If the Arena is full, the
// error wraps ErrOutOfMemory.
func (a *Arena) Alloc(bytes int) (Ptr, error) {
	room := a.size - a.used
	if bytes < 0 || bytes > room {
		return 0, fmt.Errorf("arena of %d bytes, %d of them used, has no room for %d: %w", a.size, a.used, bytes, ErrOutOfMemory)
	}
	p := a.base + Ptr(a.used)
	a.used += min((bytes+arenaAlign-1)/arenaAlign*arenaAlign, room)
	a.most = max(a.most, a.used)
	return p, nil
}

// Used returns the number of bytes handed out. Pass it to Rewind to return to this state.
func (a *Arena) Used() int { return a.used }

// Most returns the largest value of Used so far.
func (a *Arena) Most() int { return a.most }

// Rewind makes the pieces available again that were handed out since Used returned this
// number.
func (a *Arena) Rewind(used int) { a.used = min(a.used, max(used, 0)) }
