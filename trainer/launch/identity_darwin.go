package launch

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// here returns an empty Identity: start times are absolute here, so they do not repeat
// after a reboot.
func here() Identity { return Identity{} }

// Process states from sys/proc.h.
const (
	stateStopped = 4 // SSTOP
	stateZombie  = 5 // SZOMB
)

// inspect looks up a pid: when the process started, in microseconds since 1970,
// and its state.
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
