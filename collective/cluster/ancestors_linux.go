package cluster

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// environmentOf returns the variables with which a process started. It is empty if they
// are hidden from this one.
func environmentOf(pid int) environment {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	set := strings.Split(string(b), "\x00")
	return func(name string) string {
		for _, s := range set {
			if value, ok := strings.CutPrefix(s, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// parentOf returns the parent of a process, or 0 if it has ended.
func parentOf(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // the name before it may contain anything
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}
