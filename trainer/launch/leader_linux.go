package launch

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes put a worker at the head of a new process group and have the
// kernel kill it when the thread that started it ends. The starter must
// therefore stay locked to its thread for as long as the worker lives.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// wait waits for the leader to exit, kills what is left of the group, and
// reaps the leader.
func (g *group) wait(leader *exec.Cmd) error {
	awaitExit(g.pid)
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.send(syscall.SIGKILL) // fails only for those who changed their user
	err := leader.Wait()
	g.gone = true
	return err
}

// awaitExit returns when the child has exited. It does not reap it: until that
// is done its number, and that of its group, cannot be given to another.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return // or there is no such child, which the Wait that follows reports
		}
	}
}
