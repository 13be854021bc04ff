package machine

import (
	"io/fs"
	"math"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective/procfs"
)

// inquire fills in what the kernel reports, which is in files except for its name.
func (m *Machine) inquire(files fs.FS) {
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	}
	if n := countRanges(procfs.Line(files, "sys/devices/system/cpu/online")); n > 0 {
		m.Online = n
	}
	m.Memory, m.Available, _ = procfs.Memory(files)
	m.Clock = procfs.Line(files, "sys/devices/system/clocksource/clocksource0/current_clocksource")
	cores, bytes := math.Inf(1), uint64(math.MaxUint64)
	for g := range procfs.Groups(files) {
		cores, bytes = min(cores, g.Quota()), min(bytes, g.Limit())
	}
	if !math.IsInf(cores, 1) {
		m.Quota = cores
	}
	if bytes != math.MaxUint64 {
		m.Limit = bytes
	}
}

// countRanges returns how many numbers a list such as "0-3,8" has; 0 if it is malformed.
func countRanges(list string) int {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		lo, err := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || hi < lo {
			return 0
		}
		n += hi - lo + 1
	}
	return n
}
