package launch

import (
	"errors"

	"golang.org/x/sys/windows"
)

// here is empty: start times are dates here, which no other boot repeats.
func here() Identity { return Identity{} }

// stillActive is the exit code of a process that has not ended.
const stillActive = 259

// inspect asks the system about a process number: when it was started, in units
// of 100 ns since 1601, and how it is.
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
		return start, Dead // it has ended; somebody holds it open
	}
	return start, Alive
}
