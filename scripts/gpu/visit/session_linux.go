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

// ownSession makes the command start a session, so that its processes can be found.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// askToQuit sends SIGQUIT. A Go program then prints its goroutines.
func askToQuit(cmd *exec.Cmd) { _ = syscall.Kill(cmd.Process.Pid, syscall.SIGQUIT) }

// killAll kills the command and all processes that it has started: those in its session,
// and those in another session that have its mark in their environment.
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

// A process is a running process of this machine.
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

// worker returns the PID of a job's worker with this local rank, or 0 if it has not started.
// cmd is the job's launcher.
func worker(cmd *exec.Cmd, local int) (pid int) {
	variable := []byte("RINGTRAIN_LOCAL_RANK=" + strconv.Itoa(local))
	for _, p := range processes() {
		if p.parent == cmd.Process.Pid && p.has(variable) {
			return p.pid
		}
	}
	return 0
}

// has reports whether a process started with a setting in its environment.
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

// kill sends SIGKILL.
func kill(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
