package machine

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// controlGroups is the mount point of control groups, version 2.
const controlGroups = "/sys/fs/cgroup"

// inquire fills in what the kernel reports.
func (m *Machine) inquire() {
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	}
	if n := countRanges(readLine("/sys/devices/system/cpu/online")); n > 0 {
		m.Online = n
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		m.Memory, m.Available = meminfo(text)
	}
	m.Clock = readLine("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if text, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		m.Quota, m.Limit = limits(ownGroup(text), readLine)
	}
}

// readLine returns a file's text without surrounding space; "" if it cannot be read.
func readLine(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
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

// meminfo parses /proc/meminfo and returns bytes.
func meminfo(text []byte) (total, available uint64) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		kib, err := strconv.ParseUint(fields[1], 10, 54)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "MemTotal:":
			total = kib << 10
		case "MemAvailable:":
			available = kib << 10
		}
	}
	return total, available
}

// ownGroup returns this process's control group from the text of /proc/self/cgroup.
func ownGroup(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return group
		}
	}
	return "/"
}

// limits returns the narrowest limits of a group and its ancestors; 0 means none.
func limits(group string, read func(string) string) (cores float64, bytes uint64) {
	cores = math.Inf(1)
	for {
		quota, period, _ := strings.Cut(read(path.Join(controlGroups, group, "cpu.max")), " ")
		q, err := strconv.ParseFloat(quota, 64)
		p, err2 := strconv.ParseFloat(period, 64)
		if err == nil && err2 == nil && p > 0 {
			cores = min(cores, q/p)
		}
		most, err := strconv.ParseUint(read(path.Join(controlGroups, group, "memory.max")), 10, 64)
		if err == nil && (bytes == 0 || most < bytes) {
			bytes = most
		}
		if group == "/" || group == "." || group == "" {
			break
		}
		group = path.Dir(group)
	}
	if math.IsInf(cores, 1) {
		cores = 0
	}
	return cores, bytes
}
