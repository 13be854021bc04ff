//go:build unix && !linux

package launch

import (
	"os/exec"
	"syscall"
)

// attributes put a worker at the head of a new process group. There is no
// signal for the death of a parent here; the lifeline has to do.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// wait reaps the leader and kills what is left of the group. The system keeps
// the number of the group from others for as long as it has members.
func (g *group) wait(leader *exec.Cmd) error {
	err := leader.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	_ = g.send(syscall.SIGKILL) // nobody left, or nobody of ours
	return err
}
