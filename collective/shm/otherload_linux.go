package shm

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"strconv"
)

// otherLoad notices processes that compete with the ranks of this host for its cores.
type otherLoad struct {
	file *os.File // /proc/loadavg; nil if it cannot be read
}

func newOtherLoad() otherLoad {
	f, err := os.Open("/proc/loadavg")
	if err != nil {
		return otherLoad{}
	}
	return otherLoad{f}
}

func (l otherLoad) close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}

// competes reports whether more threads want a core now than there are cores and ranks.
// Without the file it does not know, and says no.
func (l otherLoad) competes(ranks int) bool {
	if l.file == nil {
		return false
	}
	var b [128]byte
	n, err := l.file.ReadAt(b[:], 0)
	if err != nil && err != io.EOF {
		return false
	}
	return runnable(b[:n]) > max(ranks, runtime.NumCPU())
}

// runnable returns the number of threads that want a core, according to the text of
// /proc/loadavg: "0.20 0.18 0.12 RUNNABLE/ALL LAST". It is 0 if the text is malformed.
func runnable(text []byte) int {
	fields := bytes.Fields(text)
	if len(fields) < 4 {
		return 0
	}
	want, _, _ := bytes.Cut(fields[3], []byte("/"))
	n, _ := strconv.Atoi(string(want))
	return n
}
