package launch

import (
	"fmt"
	"os"
)

// An Identity identifies one process forever, unlike a pid, which the system reuses. It
// can be stored as JSON and looked up later by another process. Two Identities are == if
// they are of the same process.
type Identity struct {
	// Host is the name of the machine, for people. Two machines may have the same name,
	// so there are also Machine and Boot.
	Host string `json:"host"`
	// Machine and Boot are random ids of the installed system and of its current boot.
	// Space is the pid namespace (a container has its own). All three are empty on
	// systems other than Linux.
	Machine string `json:"machine,omitempty"`
	Boot    string `json:"boot,omitempty"`
	Space   string `json:"space,omitempty"`

	PID int `json:"pid"`
	// Start is when the process started, in a unit of the system. It is 0 on systems that
	// do not report it (Unix other than Linux and macOS). There, a process that reuses
	// the pid of a dead one is taken for it.
	Start uint64 `json:"start,omitempty"`
}

// Self returns the identity of this process.
func Self() Identity { return Identify(os.Getpid()) }

// Identify returns the identity of the process that has a pid on this machine now. If
// there is none, the result identifies no process: its state is Dead, or Alive if the pid
// is reused later on a system that does not report start times.
func Identify(pid int) Identity {
	host, _ := os.Hostname() // "" on error, as in later calls
	id := here()
	id.Host, id.PID = host, pid
	id.Start, _ = inspect(pid)
	return id
}

// String returns a form for messages: "process 4711 on gpu-3".
func (id Identity) String() string { return fmt.Sprintf("process %d on %s", id.PID, id.Host) }

// A State is what this process can tell about another.
type State int

// The states of a process.
const (
	// Unknown: the process belongs to another machine or container, or this user
	// may not see it.
	Unknown State = iota
	// Dead: the process has ended, or its machine has rebooted since.
	Dead
	// Alive: the process exists.
	Alive
	// Stopped: the process exists but is suspended, by SIGSTOP, Ctrl-Z or a debugger.
	Stopped
)

// String returns the state as one word.
func (s State) String() string {
	return [...]string{"unknown", "dead", "alive", "stopped"}[s]
}

// State looks up the process on this machine.
func (id Identity) State() State { return id.judge(Self(), inspect) }

// judge is State as seen by self, with inspect to look up a pid.
func (id Identity) judge(self Identity, inspect func(pid int) (start uint64, s State)) State {
	if id.PID <= 0 || id.Host != self.Host {
		return Unknown
	}
	if id.Boot != self.Boot {
		if id.Machine != "" && id.Machine == self.Machine {
			return Dead
		}
		return Unknown // another machine with the same name
	}
	if id.Space != self.Space {
		return Unknown
	}
	start, s := inspect(id.PID)
	if (s == Alive || s == Stopped) && start != id.Start && id.Start != 0 {
		return Dead // the pid has been reused
	}
	return s
}
