package launch

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// here is empty: start times are dates here, which no other boot repeats.
func here() Identity { return Identity{} }

// The states of a process in sys/proc.h.
const (
	stateStopped = 4 // SSTOP
	stateZombie  = 5 // SZOMB
)

// inspect asks the kernel about a process number: when it was started, in
// microseconds since 1970, and how it is.
func inspect(pid int) (start uint64, s State) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return 0, Dead
		}
		return 0, Unknown
	}
	begun := info.Proc.P_starttime
	start = uint64(begun.Sec)*1e6 + uint64(begun.Usec)
	switch info.Proc.P_stat {
	case stateStopped:
		return start, Stopped
	case stateZombie:
		return start, Dead
	}
	return start, Alive
}
