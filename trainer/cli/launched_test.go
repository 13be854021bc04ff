package cli_test

import (
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

// launched is ringtrain as one of two processes that mpirun starts.
func launched(t *testing.T, port uint16, rank int, args ...string) (cmd *exec.Cmd, stdout, stderr *strings.Builder) {
	cmd = command(t, args...)
	stdout, stderr = &strings.Builder{}, &strings.Builder{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	r := strconv.Itoa(rank)
	cmd.Env = append(cmd.Env, "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_COMM_WORLD_RANK="+r, "OMPI_COMM_WORLD_LOCAL_RANK="+r,
		"PMIX_NAMESPACE=1", "MASTER_PORT="+strconv.Itoa(int(port)))
	return cmd, stdout, stderr
}

// Two processes started by mpirun make one job of two workers, with the bits of a job
// that ringtrain starts. One of them prints the table, and both share a directory.
func TestUnderMpirun(t *testing.T) {
	port := netip.MustParseAddrPort(freeAddr(t)).Port()
	dir := t.TempDir()
	args := small(t, "--steps", "5", "--batch", "16", "--out", dir)
	second, silent, err1 := launched(t, port, 1, args...)
	first, shown, err0 := launched(t, port, 0, args...)
	require.NoError(t, second.Start())
	require.NoError(t, first.Run(), err0)
	require.NoError(t, second.Wait(), err1)
	require.Empty(t, silent)
	here := last(events(t, []byte(shown.String())))
	require.Equal(t, 2, here.Workers)
	require.Equal(t, []int{5}, steps(t, dir))
	require.FileExists(t, filepath.Join(dir, "model.safetensors"))
	require.NoFileExists(t, filepath.Join(dir, launch.LockName))
	args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--out" || arg == dir })
	require.Equal(t, last(train(t, append(args, "--workers", "2")...)).Weights, here.Weights)
}

// Flags that cannot be combined with another launcher are refused before anything
// starts.
func TestMistakesUnderMpirun(t *testing.T) {
	args := small(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{append(args, "--workers", "4"), "leave --workers out"},
		{append(args, "--nodes", "2"), "on 1 machine: leave --nodes out"},
		{append(args, "--join", "127.0.0.1:1"), "leave --join out"},
		{append(args, "--rank0", "a"), "leave --rank0 out"},
		{append(args, "--transport", "inproc"), "inproc is one process"},
		{[]string{"bench", "scaling"}, "bench scaling starts its own workers"},
		{[]string{"bench", "collective", "--hosts", "netns"}, "starts its own workers"},
		{[]string{"tune", "--workers", "3"}, "leave --workers out"},
	} {
		cmd, stdout, stderr := launched(t, 1, 0, c.args...)
		require.Error(t, cmd.Run())
		require.Equal(t, 2, cmd.ProcessState.ExitCode(), stderr)
		require.Contains(t, stderr.String(), c.want)
		require.Contains(t, stderr.String(), "Open MPI")
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr)
		require.Empty(t, stdout)
	}
	t.Setenv("WORLD_SIZE", "2")
	code, _, stderr := result(args...)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "WORLD_SIZE is set and RANK is not")
}
