package shm

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// fits says why so many bytes cannot be reserved, or nil. The kernel gives a file
// in memory whatever is asked for, and then kills somebody.
func fits(size int) error {
	have := uint64(size)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		have = availableIn(string(text))
	} else {
		var info unix.Sysinfo_t
		if unix.Sysinfo(&info) == nil {
			have = uint64(info.Freeram) * uint64(info.Unit)
		}
	}
	if most, err := number("/sys/fs/cgroup/memory.max"); err == nil { // of this container, where it is one
		used, _ := number("/sys/fs/cgroup/memory.current")
		have = min(have, most-min(used, most))
	}
	if uint64(size) > have {
		return fmt.Errorf("no room for %d KiB of shared memory: %d KiB are free", size>>10, have>>10)
	}
	return nil
}

// availableIn is the bytes that /proc/meminfo says are available.
func availableIn(meminfo string) uint64 {
	_, after, _ := strings.Cut(meminfo, "MemAvailable:")
	field, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	kib, _ := strconv.ParseUint(field, 10, 54)
	return kib << 10
}

// number is a file that holds one; "max" is an error.
func number(file string) (uint64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}
