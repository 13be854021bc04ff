//go:build linux || darwin

package launch_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

// A child is alive, stopped, alive again, and dead.
func TestIdentityOfAChild(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), envPart+"=reader")
	stdin, err := child.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	pid := child.Process.Pid
	id := launch.Identify(pid)
	require.Equal(t, launch.Alive, id.State())
	require.NotEqual(t, launch.Self(), id)

	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	_, err = syscall.Wait4(pid, nil, syscall.WUNTRACED, nil) // without reaping it
	require.NoError(t, err)
	require.Equal(t, launch.Stopped, id.State())
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	require.Equal(t, launch.Alive, id.State())

	require.NoError(t, stdin.Close()) // ends the child
	require.NoError(t, child.Wait())
	require.Equal(t, launch.Dead, id.State())
	require.Equal(t, launch.Dead, launch.Identify(pid).State())
}
