package cli_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ctrl-C ends all ranks and is no failure of theirs.
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

// A worker that dies, and one that is asked to stop alone, end the others, and
// neither is a success.
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
