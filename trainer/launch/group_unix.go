//go:build unix

package launch

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// A group is a process group: a worker and everything it started that has not
// left the group.
type group struct {
	mu   sync.Mutex
	pid  int  // of the leader, and of the group
	gone bool // the leader was reaped, so its pid may be reused
}

func newGroup(leader *os.Process) (*group, error) {
	return &group{pid: leader.Pid}, nil
}

// signal sends sig to the whole group, or does nothing if the leader is gone.
func (g *group) signal(sig syscall.Signal) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		return nil
	}
	return g.send(sig)
}

func (g *group) send(sig syscall.Signal) error {
	err := syscall.Kill(-g.pid, sig)
	if sig == syscall.SIGTERM && err == nil {
		err = syscall.Kill(-g.pid, syscall.SIGCONT) // a stopped process cannot handle SIGTERM
	}
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
