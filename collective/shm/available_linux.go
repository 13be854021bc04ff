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

// A hierarchy is where the kernel reports the memory of control groups.
type hierarchy struct {
	mount        string // of the hierarchy
	limit, usage string // files of each group
	droppable    string // key in memory.stat: file pages that the kernel drops when it needs memory
}

var (
	unified = hierarchy{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}
	legacy  = hierarchy{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
)

// room returns how many bytes a control group and the groups above it can still
// allocate: up to their limits, counting droppable pages as free. A container may
// see the names that its groups have outside. Then only the topmost group is found.
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

// statistic returns a number from a file whose lines are a name and a number,
// or 0 if the name is missing.
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

// availableIn returns the available bytes according to /proc/meminfo.
func availableIn(meminfo string) uint64 {
	_, after, _ := strings.Cut(meminfo, "MemAvailable:")
	field, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	kib, _ := strconv.ParseUint(field, 10, 54)
	return kib << 10
}

// number returns the number that a file consists of. "max" is an error.
func number(system fs.FS, file string) (uint64, error) {
	text, err := fs.ReadFile(system, file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}
