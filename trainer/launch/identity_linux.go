package launch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// here returns the part of an Identity that all processes of this container share.
func here() Identity {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/pid")
	return Identity{Machine: machine(), Boot: strings.TrimSpace(string(boot)), Space: space}
}

// machine returns a hash of the machine id, which itself must not appear in files that
// others can read (machine-id(5)). It returns "" if there is none.
func machine() string {
	number, err := os.ReadFile("/etc/machine-id")
	number = bytes.TrimSpace(number)
	if err != nil || len(number) == 0 {
		return ""
	}
	sum := sha256.Sum256(append([]byte("ringtrain "), number...))
	return hex.EncodeToString(sum[:8])
}

// inspect looks up a pid: when the process started, in clock ticks since boot,
// and its state.
func inspect(pid int) (start uint64, s State) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		return parseStat(stat)
	}
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return 0, Dead
	}
	return 0, Unknown // of another user, and hidden by /proc
}

// parseStat reads fields 3 and 22 of proc(5). The name in field 2 is in parentheses and
// may contain anything, including parentheses and spaces.
func parseStat(stat []byte) (start uint64, s State) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, startTime = 0, 19 // field 3 comes first
	if len(fields) <= startTime {
		return 0, Unknown
	}
	start, err := strconv.ParseUint(string(fields[startTime]), 10, 64)
	if err != nil {
		return 0, Unknown
	}
	switch fields[state][0] {
	case 'T', 't':
		return start, Stopped
	case 'Z', 'X', 'x': // ended, but not yet reaped
		return start, Dead
	}
	return start, Alive
}
