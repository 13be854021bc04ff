package shm

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	reserveStep = 4 << 20  // is reserved at a time,
	spareBytes  = 64 << 20 // while there is so much more, for whoever else asks meanwhile
)

// reserve makes room for a file, as long as there is memory.
// The kernel gives a file in memory whatever is asked for, and then kills
// somebody. Ranks that share memory reserve theirs at the same time, so it looks
// again and again.
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

// fits says why so many bytes cannot be reserved, or nil.
func fits(size int64) error {
	have := available(os.DirFS("/"))
	if have < spareBytes || uint64(size) > have-spareBytes {
		return fmt.Errorf("%d KiB of memory are available here, of which %d are left alone: %w", have>>10, spareBytes>>10, unix.ENOMEM)
	}
	return nil
}

// available is how many bytes this process and its control groups can still get,
// by the files of a system.
func available(system fs.FS) uint64 {
	have := uint64(math.MaxUint64)
	if text, err := fs.ReadFile(system, "proc/meminfo"); err == nil {
		have = availableIn(string(text))
	} else {
		var info unix.Sysinfo_t
		if unix.Sysinfo(&info) == nil {
			have = uint64(info.Freeram) * uint64(info.Unit)
		}
	}
	groups, _ := fs.ReadFile(system, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), ":")
		controllers, at, _ := strings.Cut(line, ":")
		switch controllers {
		case "":
			have = min(have, unified.room(system, at))
		case "memory":
			have = min(have, legacy.room(system, at))
		}
	}
	return have
}

// A hierarchy is where the kernel tells of the memory of control groups.
type hierarchy struct {
	mount        string // of the hierarchy
	limit, usage string // files of each group
	droppable    string // in memory.stat: parts of files that the kernel drops when it must
}

var (
	unified = hierarchy{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}
	legacy  = hierarchy{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
)

// room returns the bytes that a control group and those above it can still get:
// unused up to their limits, or droppable. In a container, whose groups have other
// names outside, the limit is that of the topmost.
func (h *hierarchy) room(system fs.FS, at string) uint64 {
	have := uint64(math.MaxUint64)
	for at = path.Clean("/" + at); ; at = path.Dir(at) {
		dir := path.Join(h.mount, at)
		if most, err := number(system, path.Join(dir, h.limit)); err == nil {
			used, _ := number(system, path.Join(dir, h.usage))
			used -= min(used, statistic(system, path.Join(dir, "memory.stat"), h.droppable))
			have = min(have, most-min(used, most))
		}
		if at == "/" {
			return have
		}
	}
}

// statistic is a number in a file of lines of a name and a number; 0 is none.
func statistic(system fs.FS, file, name string) uint64 {
	text, _ := fs.ReadFile(system, file)
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == name {
			n, _ := strconv.ParseUint(value, 10, 64)
			return n
		}
	}
	return 0
}

// availableIn is the bytes that /proc/meminfo says are available.
func availableIn(meminfo string) uint64 {
	_, after, _ := strings.Cut(meminfo, "MemAvailable:")
	field, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	kib, _ := strconv.ParseUint(field, 10, 54)
	return kib << 10
}

// number is a file that holds one; "max" is an error.
func number(system fs.FS, file string) (uint64, error) {
	text, err := fs.ReadFile(system, file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}
