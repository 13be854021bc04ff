//go:build !linux

package shm

// Arenas are pieces of memory of this process that the ranks of its host read
// and write in place, see Options. Here, where processes share none, it is
// ordinary memory.
type Arenas struct{}

// Alloc makes a piece of so many bytes, all zero.
func (a *Arenas) Alloc(bytes int) ([]byte, error) {
	words := make([]uint64, (bytes+7)/8) // aligned for every element type
	return bytesOf(words)[:bytes:bytes], nil
}

// Renew does nothing.
func (a *Arenas) Renew() error { return nil }

// Close does nothing.
func (a *Arenas) Close() error { return nil }
