package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// roll is what members --json prints.
type roll struct {
	Job         string
	Epoch, Size int
	Members     []struct {
		Rank       *int
		Name, Node string
		Local      int
		Role       string
		Addrs      []string
		Alive      bool
	}
}

func members(t *testing.T, args ...string) roll {
	t.Helper()
	code, stdout, stderr := result(append([]string{"members", "--json"}, args...)...)
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
	var r roll
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	return r
}

// Two machines with one key measure together, and the machine of rank 0 prints the
// table. A process with a different key gets an error and does not disturb them. A
// watcher with the key sees them.
func TestBenchOnTwoNodes(t *testing.T) {
	path, _ := keyFile(t)
	other, _ := keyFile(t)
	addr, dir := freeAddr(t), t.TempDir()
	job := []string{"bench", "collective", "--nodes", "2", "--cluster", t.Name(), "-b", "4", "-e", "64", "-n", "400"}

	first := command(t, append(job, "--ranks", "2", "--bind", addr, "--key-file", path, "--json", filepath.Join(dir, "first"))...)
	firstOut, firstErr := new(transcript), new(transcript)
	up := firstErr.expect("cluster " + t.Name() + " on " + addr + ", 2 workers here of 2 machines; on the other machines: --join " + addr)
	first.Stdout, first.Stderr = firstOut, firstErr
	require.NoError(t, first.Start())
	<-up

	look := []string{addr, "--cluster", t.Name(), "--key-file", path}
	var seen roll
	require.Eventually(t, func() bool { seen = members(t, look...); return len(seen.Members) == 2 }, 10*time.Second, 50*time.Millisecond)
	require.Empty(t, seen.Job)
	require.Nil(t, seen.Members[0].Rank)

	t.Setenv("XDG_RUNTIME_DIR", t.TempDir()) // where the job has no listing
	for says, args := range map[string][]string{
		"has a key, and this process has none: give both the same key file": {"--cluster", t.Name()},
		"has a different key":              {"--cluster", t.Name(), "--key-file", other},
		"does it use another cluster name": {"--key-file", path},
	} {
		code, stdout, stderr := result(append([]string{"members", addr, "--timeout", "1s"}, args...)...)
		require.Equal(t, 1, code, stderr)
		require.Contains(t, stderr, says)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.Empty(t, stdout)
	}

	third := command(t, append(job, "--ranks", "1", "--join", addr, "--key-file", other)...)
	thirdErr := new(transcript)
	third.Stderr = thirdErr
	require.Error(t, third.Run())
	require.Equal(t, 2, third.ProcessState.ExitCode(), thirdErr)
	require.Contains(t, thirdErr.String(), addr+" has a different key: give both the same key file")

	second := command(t, append(job, "--ranks", "1", "--join", addr, "--key-file", path, "--json", filepath.Join(dir, "second"))...)
	var secondOut, secondErr bytes.Buffer
	second.Stdout, second.Stderr = &secondOut, &secondErr
	require.NoError(t, second.Run(), &secondErr)
	require.NoError(t, first.Wait(), firstErr)
	outs, errs := []string{firstOut.String(), secondOut.String()}, []string{firstErr.String(), secondErr.String()}
	at := 0 // rank 0 is on the machine without --join
	require.Contains(t, outs[at], "# links: auto chose tcp; TLS 1.3\n# ringtrain bench collective allreduce transport tcp ranks 3\n")
	require.Contains(t, outs[at], "# Out of bounds values : 0 OK")
	require.Empty(t, outs[1-at])
	require.Contains(t, errs[1-at], "the table is printed on ")
	for _, text := range errs {
		require.NotContains(t, text, "lost")
		require.NotContains(t, text, "warning")
	}
	one, err := os.ReadFile(filepath.Join(dir, "first"))
	require.NoError(t, err)
	two, err := os.ReadFile(filepath.Join(dir, "second"))
	require.NoError(t, err)
	require.Equal(t, string(one), string(two), "every machine writes the results")
	require.Contains(t, string(one), `"transport": "tcp"`)
}

// A watcher sees the View as soon as there is one, and with --watch every change.
func TestMembersOfAView(t *testing.T) {
	addr := freeAddr(t)
	job := []string{"bench", "collective", "--nodes", "2", "--cluster", t.Name(), "-b", "4", "-e", "4", "-n", "3000000", "-w", "0"}
	first, second := command(t, append(job, "--ranks", "2", "--bind", addr)...), command(t, append(job, "--ranks", "1", "--join", addr)...)
	firstErr := new(transcript)
	up := firstErr.expect("--join " + addr)
	first.Stderr = firstErr
	require.NoError(t, first.Start())
	<-up // otherwise the watch would be refused
	watch := command(t, "members", addr, "--watch", "--cluster", t.Name())
	watched, watchErr := new(transcript), new(transcript)
	waits := watched.expect("no view yet")
	watch.Stdout, watch.Stderr = watched, watchErr
	require.NoError(t, watch.Start())
	<-waits
	agreed := watched.expect("3 ranks")
	require.NoError(t, second.Start())
	<-agreed

	r := members(t, addr, "--cluster", t.Name())
	require.Equal(t, 3, r.Size)
	require.Equal(t, 1, r.Epoch)
	require.Regexp(t, "^[0-9a-f]{16}$", r.Job)
	ranks := 0
	for i, m := range r.Members {
		if m.Role != "worker" { // ends the watch
			continue
		}
		ranks++
		require.Equal(t, i, *m.Rank)
		require.Equal(t, "worker", m.Role)
		require.True(t, m.Alive)
		require.NotEmpty(t, m.Addrs)
		require.True(t, strings.HasPrefix(m.Name, m.Node+"/"))
	}
	require.Equal(t, 3, ranks)
	code, stdout, _ := result("members", addr, "--cluster", t.Name())
	require.Zero(t, code)
	require.Contains(t, stdout, "job "+r.Job+", epoch 1, 3 ranks\nrank  name")

	require.NoError(t, watch.Process.Signal(os.Interrupt))
	require.Error(t, watch.Wait())
	require.Equal(t, 130, watch.ProcessState.ExitCode(), watchErr)
	require.NoError(t, first.Process.Signal(os.Interrupt))
	require.Error(t, first.Wait())
	require.Error(t, second.Wait())
	require.Equal(t, 1, second.ProcessState.ExitCode(), "it received a signal")
}

// Machines given different measurements say so.
func TestBenchDifferentCommands(t *testing.T) {
	addr := freeAddr(t)
	job := []string{"bench", "collective", "--ranks", "1", "--nodes", "2", "--cluster", t.Name(), "-b", "4", "-e", "4"}
	first, second := command(t, append(job, "--bind", addr, "-n", "3")...), command(t, append(job, "--join", addr, "-n", "4")...)
	var said [2]bytes.Buffer
	first.Stderr, second.Stderr = &said[0], &said[1]
	require.NoError(t, first.Start())
	require.Error(t, second.Run())
	require.Error(t, first.Wait())
	require.Equal(t, 2, first.ProcessState.ExitCode(), &said[0])
	require.Equal(t, 2, second.ProcessState.ExitCode(), &said[1])
	for i := range said {
		require.Contains(t, said[i].String(), "differs from rank 0 in iterations: give the same command on every machine")
	}
}

func TestMembersUsageErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"no job of yours is running":    {},
		`"10.0.0.1": no job of yours`:   {"10.0.0.1"},
		"must be HOST:PORT":             {"127.0.0.1:1,b"},
		"--timeout must be greater":     {"127.0.0.1:1", "--timeout", "0s"},
		"--key-file: key file":          {"127.0.0.1:1", "--key-file", "/nosuch"},
		"unknown flag":                  {"127.0.0.1:1", "--nosuch"},
		"members takes no --training.x": {"127.0.0.1:1", "--training.x", "1"},
	} {
		code, stdout, stderr := result(append([]string{"members"}, args...)...)
		require.Equal(t, 2, code, stderr)
		require.Contains(t, stderr, want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.Empty(t, stdout)
	}
	code, _, stderr := result("members", freeAddr(t), "--timeout", "1h")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nothing is listening at")
}
