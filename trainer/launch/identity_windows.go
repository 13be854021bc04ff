package launch

import (
	"errors"

	"golang.org/x/sys/windows"
)

// here returns an empty Identity: start times are absolute here, so they do not repeat
// after a reboot.
func here() Identity { return Identity{} }

// stillActive is the exit code of a process that has not ended.
const stillActive = 259

// inspect looks up a pid: when the process started, in units of 100 ns since 1601,
// and its state.
func inspect(pid int) (start uint64, s State) {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return 0, Dead
	}
	if err != nil {
		return 0, Unknown
	}
	defer func() { _ = windows.CloseHandle(process) }()
	var begun, ended, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(process, &begun, &ended, &kernel, &user); err != nil {
		return 0, Unknown
	}
	start = uint64(begun.HighDateTime)<<32 | uint64(begun.LowDateTime)
	var code uint32
	if err := windows.GetExitCodeProcess(process, &code); err != nil || code != stillActive {
		return start, Dead // ended, but some process holds a handle to it
	}
	return start, Alive
}
