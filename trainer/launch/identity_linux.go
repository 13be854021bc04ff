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

// here is the part of an Identity that all processes of this container have.
func here() Identity {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/pid")
	return Identity{Machine: machine(), Boot: strings.TrimSpace(string(boot)), Space: space}
}

// machine is a hash of the number of this installation, which itself is not for
// files that others may read (machine-id(5)); "" if it has none.
func machine() string {
	number, err := os.ReadFile("/etc/machine-id")
	number = bytes.TrimSpace(number)
	if err != nil || len(number) == 0 {
		return ""
	}
	sum := sha256.Sum256(append([]byte("ringtrain "), number...))
	return hex.EncodeToString(sum[:8])
}

// inspect asks the kernel about a process number: when it was started, in clock
// ticks since boot, and how it is.
func inspect(pid int) (start uint64, s State) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		return parseStat(stat)
	}
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return 0, Dead
	}
	return 0, Unknown // of another user, and /proc hides it
}

// parseStat reads what proc(5) calls fields 3 and 22. The name in field 2 is in
// parentheses and may hold anything, parentheses and spaces too.
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
	case 'Z', 'X', 'x': // it has ended; its parent has not noticed
		return start, Dead
	}
	return start, Alive
}
