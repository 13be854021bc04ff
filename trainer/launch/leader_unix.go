//go:build unix && !linux

package launch

import (
	"os/exec"
	"syscall"
)

// attributes make a worker the leader of a new process group. These systems send no
// signal when a parent dies, so only the lifeline covers that.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// wait reaps the leader and kills the rest of the group. The system does not reuse the id
// of a group that has members.
func (g *group) wait(leader *exec.Cmd) error {
	err := leader.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	_ = g.send(syscall.SIGKILL) // fails if no process is left, or none of ours
	return err
}
