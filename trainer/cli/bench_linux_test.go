package cli_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ctrl-C ends all ranks and does not count as a failure.
func TestBenchInterrupted(t *testing.T) {
	for _, transport := range []string{"inproc", "tcp"} {
		cmd := command(t, "bench", "collective", "--transport", transport, "-b", "4", "-e", "64", "-n", "3000000", "-w", "0")
		var stderr transcript
		out := new(transcript)
		begun := out.expect("(us)")
		cmd.Stdout, cmd.Stderr = out, &stderr
		require.NoError(t, cmd.Start())
		<-begun
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		require.Error(t, cmd.Wait())
		require.Equal(t, 130, cmd.ProcessState.ExitCode(), "%s: %s", transport, &stderr)
		require.NotContains(t, stderr.String(), "lost")
	}
}

// If one worker dies, or is asked to stop on its own, the others end too, and the
// command fails.
func TestBenchLosesAWorker(t *testing.T) {
	for sig, says := range map[syscall.Signal]string{syscall.SIGKILL: "killed by signal 9", syscall.SIGTERM: "received a stop signal"} {
		r := &running{Cmd: command(t, "bench", "collective", "-b", "4", "-e", "64", "-n", "3000000", "-w", "0"), stderr: new(transcript)}
		out := new(transcript)
		begun := out.expect("(us)")
		r.Stdout, r.Stderr = out, r.stderr
		require.NoError(t, r.Start())
		<-begun
		require.NoError(t, syscall.Kill(r.workers(t)[1], sig))
		require.Error(t, r.Wait())
		require.Equal(t, 1, r.ProcessState.ExitCode())
		require.Contains(t, r.stderr.String(), says)
		require.NotContains(t, out.String(), "Out of bounds")
	}
}
