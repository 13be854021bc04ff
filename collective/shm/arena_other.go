//go:build !linux

package shm

// Arenas are pieces of this process's memory that the ranks of its host read
// and write in place; see Options. On this system processes do not share
// memory, so it is ordinary memory.
type Arenas struct{}

// Alloc returns a piece of the given number of bytes, all zero.
func (a *Arenas) Alloc(bytes int) ([]byte, error) {
	words := make([]uint64, (bytes+7)/8) // aligned for every element type
	return bytesOf(words)[:bytes:bytes], nil
}

// Renew does nothing.
func (a *Arenas) Renew() error { return nil }

// Close does nothing.
func (a *Arenas) Close() error { return nil }
