package cli_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// inNamespaces returns a command whose ranks run in network namespaces. dir is the only
// place where it can leave files.
func inNamespaces(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, stdout, stderr *transcript) {
	network, err := launch.Namespaces(t.Context(), 1, launch.NetworkOptions{Link: 1e9})
	if err != nil {
		t.Skip(err)
	}
	require.NoError(t, network.Close())
	cmd = command(t, append([]string{"bench", "collective", "--hosts", "netns"}, args...)...)
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	stdout, stderr = new(transcript), new(transcript)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// left returns the files in a directory.
func left(t *testing.T, dir string) []string {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Each rank has its own address, traffic is encrypted unless --insecure is given, and a
// limited link has the given rate.
func TestBenchInNamespaces(t *testing.T) {
	for about, args := range map[string][]string{
		"1gbit each way; TLS 1.3":   {"--link", "1gbit", "-n", "3"},
		"no limit each way; no TLS": {"--insecure", "-n", "3"},
	} {
		dir := t.TempDir()
		cmd, stdout, stderr := inNamespaces(t, dir, append(args, "--ranks", "3", "-b", "1M", "-e", "1M")...)
		require.NoError(t, cmd.Run(), stderr)
		require.Empty(t, stderr.String())
		require.Contains(t, stdout.String(), "each rank in a network namespace, "+about+"\n")
		require.Contains(t, stdout.String(), "/2 at 10.200.0.3:")
		require.Contains(t, stdout.String(), "0 OK")
		for line := range strings.Lines(stdout.String()) {
			if fields := strings.Fields(line); line[0] != '#' && args[0] == "--link" {
				require.Len(t, fields, 15)
				require.Contains(t, []string{"0.12", "0.11", "0.10", "0.09", "0.08", "0.07", "0.06", "0.05", "0.04", "0.03", "0.02", "0.01"}, fields[11], "of 0.125 GB/s")
			}
		}
		require.Empty(t, left(t, dir), "the key has been removed")
	}
}

// With limited links, each size is measured for a second.
func TestBenchTakesItsTimeInNamespaces(t *testing.T) {
	collectivetest.Slow(t)
	cmd, stdout, stderr := inNamespaces(t, t.TempDir(), "--link", "100mbit", "-b", "4", "-e", "4", "--insecure")
	require.NoError(t, cmd.Run(), stderr)
	require.Contains(t, stdout.String(), "iters: as many as take 1s")
}

// However the command ends, it leaves nothing behind.
func TestBenchInNamespacesIsStopped(t *testing.T) {
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 75} {
		dir := t.TempDir()
		cmd, stdout, stderr := inNamespaces(t, dir, "-b", "4", "-e", "4", "-n", "3000000", "-w", "0")
		begun := stdout.expect("(us)")
		require.NoError(t, cmd.Start())
		<-begun
		require.Len(t, left(t, dir), 1, "the key")
		require.NoError(t, cmd.Process.Signal(sig))
		require.Error(t, cmd.Wait())
		require.Equal(t, code, cmd.ProcessState.ExitCode(), stderr)
		require.Empty(t, left(t, dir))
	}
	dir := t.TempDir()
	cmd, stdout, stderr := inNamespaces(t, dir, "-b", "4", "-e", "4", "-n", "3000000", "-w", "0")
	begun := stdout.expect("(us)")
	require.NoError(t, cmd.Start())
	<-begun
	r := &running{Cmd: cmd, stderr: stderr}
	require.NoError(t, syscall.Kill(r.workers(t)[1], syscall.SIGKILL))
	require.Error(t, cmd.Wait())
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.Contains(t, stderr.String(), "killed by signal 9")
	require.Empty(t, left(t, dir))
}
