//go:build unix

package launch_test

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startLauncher starts another process, which launches workers with these parts.
func startLauncher(t *testing.T, b *beacon, workers string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envPart+"=launcher", "LAUNCH_TEST_WORKERS="+workers, b.env())
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	return cmd
}

func TestWorkersDieWithTheLauncher(t *testing.T) {
	workers := "tethered wrapper"
	expected := 3 // the wrapper has a child
	if runtime.GOOS == "linux" {
		workers += " deaf patient" // they ignore their lifeline, but the kernel ends them
		expected += 2
	}
	b := newBeacon(t)
	cmd := startLauncher(t, b, workers)
	var people []sighting
	for range expected {
		people = append(people, b.next())
	}
	require.NoError(t, syscall.Kill(cmd.Process.Pid, syscall.SIGKILL))
	_ = cmd.Wait() // "signal: killed"
	for _, s := range people {
		if s.part == "wrapper" && runtime.GOOS != "linux" {
			continue // it ends when the test does
		}
		s.requireGone(t, time.Second)
	}
}
