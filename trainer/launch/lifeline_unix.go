//go:build unix

package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

var errNoPipe = errors.New("not the reading end of a pipe")

// passLifeline makes pipe the first extra file of the worker: descriptor 3.
func passLifeline(cmd *exec.Cmd, pipe *os.File) {
	cmd.ExtraFiles = []*os.File{pipe}
	cmd.Env = append(cmd.Env, EnvLifeline+"=3")
}

// takeLifeline makes a file of the inherited descriptor. Whoever passed the
// variable on may have used its number for something else, so it looks first.
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
	// So that the runtime polls it, and Close ends a Read.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("set non-blocking: %w", err)
	}
	return os.NewFile(uintptr(fd), "lifeline"), nil
}
