package shm

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// leaveCores makes the thread of this goroutine leave the given cores, numbered as by
// core, if it may use others. It may return to them later: the kernel wakes a rank on
// the core of the rank that wakes it, if the other cores are busy just then, and may
// leave both there for many milliseconds.
func leaveCores(cores []uint64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return
	}
	others := allowed
	for _, c := range cores {
		others.Clear(int(c) - 1)
	}
	if others.Count() > 0 && unix.SchedSetaffinity(0, &others) == nil {
		_ = unix.SchedSetaffinity(0, &allowed)
	}
}
