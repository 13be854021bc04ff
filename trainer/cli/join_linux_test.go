package cli_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A job whose machines do not all join ends after --join-timeout. One line says which
// are missing and what was tried.
func TestJoinTimeout(t *testing.T) {
	nobody := freeAddr(t)
	cmd := command(t, small(t, "--workers", "2", "--nodes", "2", "--join", nobody, "--join-timeout", "500ms", "--cluster", t.Name())...)
	stderr := new(transcript)
	cmd.Stderr = stderr
	require.Error(t, cmd.Run())
	require.Equal(t, 1, cmd.ProcessState.ExitCode(), stderr)
	require.Regexp(t, `^cluster \S+ on 127.0.0.1:\d+, 2 workers here of 2 machines\nringtrain: worker \d \(\S+\): gave up after 500ms \(--join-timeout\) waiting for 1 more machine(, worker 1 on \S+)? \(\d of 4 workers have joined\): `+
		nobody+` refused the connection; try: ringtrain doctor `+nobody+`\n$`, stderr.String())

	code, _, said := result(small(t, "--nodes", "2", "--join-timeout", "0s")...)
	require.Equal(t, 2, code)
	require.Contains(t, said, "--join-timeout must be greater than 0")
}

// A worker that is asked to stop before the job has formed ends the command, because
// the others would wait for it.
func TestInterruptOfOneWaitingWorker(t *testing.T) {
	cmd := command(t, small(t, "--workers", "2", "--nodes", "2", "--bind", "127.0.0.1:0", "--cluster", t.Name(), "--log-level", "debug")...)
	r := &running{Cmd: cmd, stderr: new(transcript)}
	waits := r.stderr.expect("[worker 1] ") // the log says where it gossips
	cmd.Stderr = r.stderr
	require.NoError(t, cmd.Start())
	<-waits
	require.NoError(t, syscall.Kill(r.workers(t)[1], syscall.SIGINT))
	require.Error(t, cmd.Wait())
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.Regexp(t, `ringtrain: worker 1 \(\S+/1\): it received a stop signal before the job had formed\n$`, r.stderr.String())
}
