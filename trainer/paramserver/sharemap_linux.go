package paramserver

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file of this size. Its space is allocated first: a store to a page for which
// there is no room would kill the process.
func mapFile(f *os.File, size int64) ([]byte, error) {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, fmt.Errorf("fallocate: %w", err)
		}
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	return mem, nil
}

// unmapFile undoes mapFile. mem may be nil.
func unmapFile(mem []byte) error {
	if mem == nil {
		return nil
	}
	return unix.Munmap(mem)
}
