// Package procfs reads what Linux reports in files about a machine and the limits of this
// process. The files are those of a file system that the caller names, os.DirFS("/") for
// this machine. On other systems they are missing.
package procfs

import (
	"io/fs"
	"iter"
	"strconv"
	"strings"
)

// Line returns a file's text without surrounding space; "" if it cannot be read.
func Line(system fs.FS, name string) string {
	text, err := fs.ReadFile(system, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// mostProcessor is more than the text about one processor has, in bytes. Machines with
// many processors report far more about all of them.
const mostProcessor = 8 << 10

// Processor returns the names and values that /proc/cpuinfo has for the first processor.
func Processor(system fs.FS) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		f, err := system.Open("proc/cpuinfo")
		if err != nil {
			return
		}
		defer f.Close()
		text := make([]byte, mostProcessor)
		n, _ := f.Read(text)
		for line := range strings.Lines(string(text[:n])) {
			name, value, ok := strings.Cut(line, ":")
			if !ok || !yield(strings.TrimSpace(name), strings.TrimSpace(value)) {
				return // an empty line ends the first processor
			}
		}
	}
}

// Memory returns the machine's memory and how much of it can be allocated without
// swapping, in bytes. What /proc/meminfo lacks is 0. The error is that of reading it.
func Memory(system fs.FS) (total, available uint64, err error) {
	text, err := fs.ReadFile(system, "proc/meminfo")
	if err != nil {
		return 0, 0, err
	}
	return statistic(string(text), "MemTotal:") << 10, statistic(string(text), "MemAvailable:") << 10, nil
}

// statistic returns a number from a text whose lines begin with a name and a number; 0 if
// the name or the number is missing.
func statistic(text, name string) uint64 {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			if n, err := strconv.ParseUint(fields[1], 10, 54); err == nil { // KiB of it fit into uint64
				return n
			}
		}
	}
	return 0
}
