package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ownSession has the command begin a session, whose processes can be found.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// askToQuit asks the command to quit; a Go program prints its goroutines.
func askToQuit(cmd *exec.Cmd) { _ = syscall.Kill(cmd.Process.Pid, syscall.SIGQUIT) }

// killAll kills what is left of the command and of all that it has started: what is in
// its session, and what left that but still has its mark.
func killAll(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	var own []byte
	for _, setting := range cmd.Env {
		if strings.HasPrefix(setting, mark+"=") {
			own = []byte(setting)
		}
	}
	for _, p := range processes() {
		if p.session == cmd.Process.Pid || own != nil && p.has(own) {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}

// A process is one that runs on this machine.
type process struct{ pid, parent, session int }

func processes() (all []process) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 4 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		session, _ := strconv.Atoi(fields[3])
		all = append(all, process{pid, parent, session})
	}
	return all
}

// worker is the process of the worker of a job's command with a local rank, 0 if there
// is none yet.
func worker(cmd *exec.Cmd, local int) (pid int) {
	variable := []byte("RINGTRAIN_LOCAL_RANK=" + strconv.Itoa(local))
	for _, p := range processes() {
		if p.parent == cmd.Process.Pid && p.has(variable) {
			return p.pid
		}
	}
	return 0
}

// has reports whether a process began with a setting in its environment.
func (p process) has(setting []byte) bool {
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "environ"))
	if err != nil {
		return false // it has ended, or is another user's
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(v, setting) {
			return true
		}
	}
	return false
}

// kill is kill -9.
func kill(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
