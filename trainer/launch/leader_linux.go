package launch

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes make a worker the leader of a new process group, and have the kernel kill it
// when the thread that started it ends. The caller must therefore stay locked to its
// thread as long as the worker lives.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// wait waits until the leader exits, kills the rest of the group, and reaps the leader.
func (g *group) wait(leader *exec.Cmd) error {
	awaitExit(g.pid)
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.send(syscall.SIGKILL) // fails only for processes that changed their user
	err := leader.Wait()
	g.gone = true
	return err
}

// awaitExit returns when the child has exited. It does not reap the child: until it is
// reaped, its pid and the id of its group cannot be reused.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return // or there is no such child, which the following Wait reports
		}
	}
}
