//go:build unix

package launch

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// A group is a process group, and so a worker with all that it started and
// that did not leave the group by itself.
type group struct {
	mu   sync.Mutex
	pid  int  // of the leader, and of the group
	gone bool // the leader was reaped, so its number may belong to somebody else
}

func newGroup(leader *os.Process) (*group, error) {
	return &group{pid: leader.Pid}, nil
}

// signal sends sig to all of the group; to none if the leader is gone.
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
		err = syscall.Kill(-g.pid, syscall.SIGCONT) // a stopped process cannot handle it
	}
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
