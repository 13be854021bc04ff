package shm

import (
	"fmt"
	"io/fs"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective/procfs"
)

const (
	reserveStep = 4 << 20  // bytes reserved at a time
	spareBytes  = 64 << 20 // bytes left available for other allocations meanwhile
)

// reserve allocates the pages of a file in memory, as long as memory is
// available. Left alone, the kernel grants whatever is asked for, and then
// kills a process. Ranks that share memory reserve theirs at the same time, so
// reserve checks before every step.
func reserve(fd int, size int64) error {
	if err := fits(size); err != nil {
		return err
	}
	for at := int64(0); at < size; at += reserveStep {
		n := min(reserveStep, size-at)
		if err := fits(n); err != nil {
			return err
		}
		if err := fallocateAt(fd, at, n); err != nil {
			return err
		}
	}
	return nil
}

// fits returns why size bytes cannot be reserved, or nil.
func fits(size int64) error {
	have := available(os.DirFS("/"))
	if have < spareBytes || uint64(size) > have-spareBytes {
		return fmt.Errorf("only %d KiB of memory are available, and %d KiB must stay free: %w", have>>10, spareBytes>>10, unix.ENOMEM)
	}
	return nil
}

// available returns how many bytes this process and its control groups can
// still allocate, according to the files of system.
func available(system fs.FS) uint64 {
	_, have, err := procfs.Memory(system)
	if err != nil {
		have = math.MaxUint64
		var info unix.Sysinfo_t
		if unix.Sysinfo(&info) == nil {
			have = uint64(info.Freeram) * uint64(info.Unit)
		}
	}
	for g := range procfs.Groups(system) {
		have = min(have, g.Room())
	}
	return have
}
