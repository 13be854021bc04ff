// Package machine reports what this machine has: cores, memory, instructions, and how
// busy its processors are.
package machine

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/ringtrain/ringtrain/collective/fold"
	"github.com/ringtrain/ringtrain/collective/procfs"
)

// A Machine describes this machine. Fields that the system does not report are zero.
type Machine struct {
	Cores        int     `json:"cores"`           // that this process may run on
	Online       int     `json:"online_cores"`    // of the machine
	GOMAXPROCS   int     `json:"gomaxprocs"`      // threads that run Go code at a time
	Quota        float64 `json:"quota,omitempty"` // cores, limit of the control group
	Memory       uint64  `json:"memory"`          // bytes
	Available    uint64  `json:"available"`       // bytes
	Limit        uint64  `json:"limit,omitempty"` // bytes, limit of the control group
	Instructions string  `json:"instructions"`    // that reductions use; "" for plain loops
	Kernel       string  `json:"kernel"`
	Clock        string  `json:"clock_source,omitempty"`
	Time         string  `json:"time"` // UTC
}

// This describes this machine.
func This() Machine {
	m := Machine{
		Cores: runtime.NumCPU(), Online: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		Instructions: fold.Instructions(), Time: time.Now().UTC().Format(time.RFC3339Nano),
	}
	m.inquire(os.DirFS("/"))
	return m
}

// Memory returns the most bytes that a process can have here without swap. If the system
// does not report it, the result is more than any machine has.
func Memory() uint64 { return This().room() }

// room is Memory on m.
func (m Machine) room() uint64 {
	room := uint64(1) << 47
	for _, n := range []uint64{m.Memory, m.Limit} {
		if n > 0 {
			room = min(room, n)
		}
	}
	return room
}

// Processor returns the model of this machine's CPU, or its architecture if the model is
// not known.
func Processor() string { return processor(os.DirFS("/")) }

func processor(files fs.FS) string {
	for name, value := range procfs.Processor(files) {
		if name == "model name" {
			return cmp.Or(value, runtime.GOARCH)
		}
	}
	return runtime.GOARCH // as on ARM
}

// GiB returns a number of bytes as text, such as "15.5 GiB"; 0 is "unknown".
func GiB(bytes uint64) string {
	if bytes == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
