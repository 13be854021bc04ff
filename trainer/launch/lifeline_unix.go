//go:build unix

package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

var errNoPipe = errors.New("not the read end of a pipe")

// passLifeline makes pipe the worker's first extra file, descriptor 3.
func passLifeline(cmd *exec.Cmd, pipe *os.File) {
	cmd.ExtraFiles = []*os.File{pipe}
	cmd.Env = append(cmd.Env, EnvLifeline+"=3")
}

// takeLifeline returns the inherited descriptor as a file. It checks first that it is a
// pipe, because a process that passed on the variable may have reused the number.
func takeLifeline(fd int) (*os.File, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, fmt.Errorf("fstat: %w", err)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return nil, fmt.Errorf("fcntl: %w", err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFIFO || flags&unix.O_ACCMODE != unix.O_RDONLY {
		return nil, errNoPipe
	}
	unix.CloseOnExec(fd)
	// Non-blocking, so that the runtime polls it and Close ends a Read.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("set non-blocking: %w", err)
	}
	return os.NewFile(uintptr(fd), "lifeline"), nil
}
