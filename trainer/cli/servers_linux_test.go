package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// twoMachines makes two network namespaces with a cable between them, 10.77.0.1 and
// 10.77.0.2, and returns a function that makes commands of ringtrain in them.
func twoMachines(t *testing.T) (within func(machine int, args ...string) *exec.Cmd) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("network namespaces need the ip command (iproute2)")
	}
	a, b := fmt.Sprintf("rt%da", os.Getpid()), fmt.Sprintf("rt%db", os.Getpid())
	ip := func(args ...string) {
		out, err := exec.Command("ip", args...).CombinedOutput()
		if err != nil && args[0] == "netns" && args[1] == "add" {
			t.Skipf("network namespaces do not work here: %s", out)
		}
		require.NoError(t, err, "ip %v: %s", args, out)
	}
	for _, ns := range []string{a, b} {
		ip("netns", "add", ns)
		t.Cleanup(func() { ip("netns", "del", ns) })
		ip("-n", ns, "link", "set", "lo", "up")
	}
	ip("link", "add", a, "netns", a, "type", "veth", "peer", "name", b, "netns", b)
	ip("-n", a, "addr", "add", "10.77.0.1/24", "dev", a)
	ip("-n", b, "addr", "add", "10.77.0.2/24", "dev", b)
	ip("-n", a, "link", "set", a, "up")
	ip("-n", b, "link", "set", b, "up")
	return func(machine int, args ...string) *exec.Cmd {
		cmd := command(t, args...)
		cmd.Args = append([]string{"ip", "netns", "exec", []string{a, b}[machine], cmd.Path}, cmd.Args[1:]...)
		cmd.Path, _ = exec.LookPath("ip")
		return cmd
	}
}

// Servers are divided among the machines. Each launcher starts its own again, and the weights
// are those of a job without servers on one machine.
func TestServersOnTwoMachines(t *testing.T) {
	within := twoMachines(t)
	job := []string{"--steps", "300", "--training.batch_size", "32"}
	want := events(t, []byte(stdoutOf(t, small(t, append(job, "--workers", "4", "--transport", "inproc")...)...)))
	served := small(t, append(job, "--workers", "2", "--nodes", "2", "--insecure", "--strategy", "ps-sync", "--servers", "3", "--max-restarts", "3")...)
	var out bytes.Buffer
	second := &running{Cmd: within(1, append(served, "--join", "10.77.0.1:7946")...), stderr: new(transcript)}
	second.Stdout, second.Stderr = &out, second.stderr
	require.NoError(t, second.Start())
	first := follow(t, within(0, append(served, "--bind", "10.77.0.1")...))

	here, there := first.workers(t), second.workers(t)
	require.Len(t, here, 4, "two workers and two servers")
	require.Len(t, there, 3, "two workers and one server")
	require.NoError(t, syscall.Kill(there[2], syscall.SIGKILL))
	for e := (event{}); e.Step < 150; {
		var err error
		e, err = first.next()
		require.NoError(t, err, first.stderr)
	}
	require.NoError(t, syscall.Kill(first.workers(t)[3], syscall.SIGKILL))
	require.Zero(t, first.finish(t), first.stderr)
	require.NoError(t, second.Wait(), second.stderr)
	require.Equal(t, 1, strings.Count(second.stderr.String(), "starting it again"), second.stderr)
	require.Equal(t, 1, strings.Count(first.stderr.String(), "starting it again"), first.stderr)
	require.Equal(t, want[len(want)-1].Weights, first.seen[len(first.seen)-1].Weights)
	two := events(t, out.Bytes())
	require.Equal(t, want[len(want)-1].Weights, two[len(two)-1].Weights)
}

// Workers of two machines do not wait for each other, and end with the same weights. A lost
// worker ends the job on both machines, which name it.
func TestAsyncServersOnTwoMachines(t *testing.T) {
	within := twoMachines(t)
	start := func(steps string) (first, second *running, out *bytes.Buffer) {
		job := small(t, "--steps", steps, "--training.batch_size", "32", "--workers", "2", "--nodes", "2", "--insecure", "--strategy", "ps-async", "--servers", "3")
		out = new(bytes.Buffer)
		second = &running{Cmd: within(1, append(job, "--join", "10.77.0.1:7946")...), stderr: new(transcript)}
		second.Stdout, second.Stderr = out, second.stderr
		require.NoError(t, second.Start())
		return follow(t, within(0, append(job, "--bind", "10.77.0.1")...)), second, out
	}

	first, second, out := start("50")
	require.Zero(t, first.finish(t), first.stderr)
	require.NoError(t, second.Wait(), second.stderr)
	two := events(t, out.Bytes())
	require.NotEmpty(t, two[len(two)-1].Weights)
	require.Equal(t, first.seen[len(first.seen)-1].Weights, two[len(two)-1].Weights)

	first, second, _ = start("1000000") // and has made some steps
	require.NoError(t, syscall.Kill(second.workers(t)[0], syscall.SIGKILL))
	require.NotZero(t, first.finish(t))
	require.Error(t, second.Wait())
	require.Regexp(t, `lost rank 2 |rank 2 \(\S+/0\) failed`, first.stderr.String())
	require.Contains(t, second.stderr.String(), "was killed by signal 9")
}

// stdoutOf returns what a command that succeeds writes.
func stdoutOf(t *testing.T, args ...string) string {
	code, stdout, stderr := result(args...)
	require.Zero(t, code, stderr)
	return stdout
}
