//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

// GPUs are for Linux; elsewhere only the program's pure parts are used.

func ownSession(*exec.Cmd) {}

func askToQuit(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killAll(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func worker(*exec.Cmd, int) int { return 0 }

func kill(int) error { return errors.ErrUnsupported }
