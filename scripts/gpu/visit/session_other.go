//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

// The visit runs only on Linux. These functions let the other tests run elsewhere.

func ownSession(*exec.Cmd) {}

func askToQuit(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killAll(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func worker(*exec.Cmd, int) int { return 0 }

func kill(int) error { return errors.ErrUnsupported }
