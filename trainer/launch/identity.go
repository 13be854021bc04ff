package launch

import (
	"fmt"
	"os"
)

// An Identity names one process for good: unlike a number, which the system
// gives to another process once the first is gone. It is made to be written
// down, as JSON, and to be looked up by another process later. Comparing two
// with == tells whether they are the same process.
type Identity struct {
	// Host is the name of the machine. Names are for people: two machines may
	// have the same one, which is why there are Machine and Boot.
	Host string `json:"host"`
	// Machine and Boot are random numbers of the installed system and of its
	// current boot, and Space is the process number space (a container has its
	// own). All three are empty where the system does not tell: outside Linux.
	Machine string `json:"machine,omitempty"`
	Boot    string `json:"boot,omitempty"`
	Space   string `json:"space,omitempty"`

	PID int `json:"pid"`
	// Start is when the process was started, in a unit of the system's own. It is
	// 0 where the system does not tell (unix other than Linux and macOS). There a
	// process that was given the number of one that ended is taken for it.
	Start uint64 `json:"start,omitempty"`
}

// Self is the identity of this process.
func Self() Identity { return Identify(os.Getpid()) }

// Identify is the identity of the process of this machine that has the number
// now. If there is none, the result names no process: it is Dead, or Alive when
// the number is given to a new one and the system tells no start times.
func Identify(pid int) Identity {
	host, _ := os.Hostname() // without a name: "", as it will be at the next call
	id := here()
	id.Host, id.PID = host, pid
	id.Start, _ = inspect(pid)
	return id
}

// String is for messages: "process 4711 on gpu-3".
func (id Identity) String() string { return fmt.Sprintf("process %d on %s", id.PID, id.Host) }

// A State is what can be said about a process from here.
type State int

// The states of a process.
const (
	// Unknown: the process is another machine's or another container's, or this
	// user may not see it.
	Unknown State = iota
	// Dead: the process has ended, or its machine was started anew since.
	Dead
	// Alive: the process exists.
	Alive
	// Stopped: the process exists and is suspended, by SIGSTOP, Ctrl-Z or a debugger.
	Stopped
)

// String is one word.
func (s State) String() string {
	return [...]string{"unknown", "dead", "alive", "stopped"}[s]
}

// State looks the process up. It asks the system of this machine alone.
func (id Identity) State() State { return id.judge(Self(), inspect) }

// judge is State as seen by self, with what the system says about a number.
func (id Identity) judge(self Identity, inspect func(pid int) (start uint64, s State)) State {
	if id.PID <= 0 || id.Host != self.Host {
		return Unknown
	}
	if id.Boot != self.Boot {
		if id.Machine != "" && id.Machine == self.Machine {
			return Dead
		}
		return Unknown // another machine of the same name
	}
	if id.Space != self.Space {
		return Unknown
	}
	start, s := inspect(id.PID)
	if (s == Alive || s == Stopped) && start != id.Start && id.Start != 0 {
		return Dead // the number is another's now
	}
	return s
}
