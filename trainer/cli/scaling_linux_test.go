package cli_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// With network namespaces the links count bytes too, and both counts agree.
func TestBenchScalingInNamespaces(t *testing.T) {
	network, err := launch.Namespaces(t.Context(), 1, launch.NetworkOptions{Link: 1e9})
	if err != nil {
		t.Skip(err)
	}
	require.NoError(t, network.Close())
	report, rows, stdout, _ := scaling(t, "--trials", "2", "--steps", "40", "--compute", "emulate:5ms", "--hosts", "netns", "--link", "1gbit")
	require.Contains(t, stdout, "each worker in a network namespace of one machine, 1gbit each way, TLS 1.3")
	for _, trial := range report.Trials {
		require.Len(t, trial.Wire, trial.Workers)
		for rank, sent := range trial.Sent {
			if trial.Workers > 1 {
				require.InEpsilon(t, sent, trial.Wire[rank], bench.WireTolerance, "rank %d", rank)
			}
		}
	}
	require.Less(t, rows[1].WireOff, bench.WireTolerance)
	require.Positive(t, rows[1].Busy)
}

// On one host workers share memory, as in train, and the table says so.
func TestBenchScalingSharesMemory(t *testing.T) {
	for _, transport := range []string{"auto", "shm"} {
		report, _, stdout, _ := scaling(t, "--trials", "2", "--compute", "emulate:1ms", "--transport", transport)
		for _, trial := range report.Trials {
			require.Equal(t, bench.Links(trial.Workers, func(int, int) string { return "shm" }), trial.Links)
		}
		require.Contains(t, stdout, "1 pair of ranks, each over shm.")
		require.Contains(t, stdout, "(shm) send no gradients")
		require.NotContains(t, stdout, "loopback")
	}
}

// However the command ends, the error names the trial and nothing is left behind.
func TestBenchScalingIsStopped(t *testing.T) {
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 75, syscall.SIGKILL: 1} {
		if sig != syscall.SIGKILL && !collectivetest.Thorough() {
			continue // TestBenchInNamespacesIsStopped and TestSignals send the others
		}
		dir := t.TempDir()
		cmd := command(t, "bench", "scaling", "--data", "mnist:"+smallDir(), "--workers", "1,2", "--trials", "2", "--steps", "200", "--compute", "emulate:5ms", "--out", filepath.Join(dir, "out"))
		cmd.Env = append(cmd.Env, "TMPDIR="+dir)
		r := &running{Cmd: cmd, stderr: new(transcript)}
		begun := r.stderr.expect("workers 1: ")
		cmd.Stderr = r.stderr
		require.NoError(t, cmd.Start())
		<-begun
		require.Eventually(t, func() bool { return len(r.workers(t)) == 2 }, 20*time.Second, 5*time.Millisecond)
		if sig == syscall.SIGKILL {
			require.NoError(t, syscall.Kill(r.workers(t)[1], sig))
			require.Error(t, cmd.Wait())
			require.Contains(t, r.stderr.String(), "killed by signal 9")
		} else {
			require.NoError(t, cmd.Process.Signal(sig))
			require.Error(t, cmd.Wait())
		}
		require.Equal(t, want, cmd.ProcessState.ExitCode(), r.stderr)
		require.Regexp(t, `ringtrain: trial 1 of 2, allreduce, workers 2: `, r.stderr.String())
		require.Empty(t, left(t, dir), "the config and the directory for results are removed")
	}
}
