package cli_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// background reads the events of a job until it ends, and returns its exit code then.
func (r *running) background() (ended <-chan int) {
	code := make(chan int, 1)
	go func() {
		for err := error(nil); err == nil; {
			_, err = r.next()
		}
		_ = r.Wait()
		code <- r.ProcessState.ExitCode()
	}()
	return code
}

// interrupt stops a job in background and returns its exit code.
func (r *running) interrupt(t *testing.T, ended <-chan int) int {
	t.Helper()
	require.NoError(t, r.Process.Signal(os.Interrupt))
	select {
	case code := <-ended:
		return code
	case <-time.After(time.Minute):
		require.Fail(t, "the job does not stop")
	}
	return -1
}

// A running job switches from servers to allreduce and back by command, with server
// processes and without. It loses no step, and the weights are those of a job that never
// switched.
func TestStrategyCommand(t *testing.T) {
	path, _ := keyFile(t)
	other, _ := keyFile(t)
	for _, servers := range []string{"2", "colocated"} {
		t.Run(servers, func(t *testing.T) {
			if servers == "colocated" {
				collectivetest.Slow(t)
			}
			out := filepath.Join(t.TempDir(), "run")
			args := small(t, "--workers", "2", "--strategy", "ps-sync", "--servers", servers, "--key-file", path, "--out", out)
			r := begin(t, args...)
			view := only(r.seen, "view")[0]
			ended := r.background()

			code, stdout, stderr := result("strategy", "allreduce") // the only job
			require.Zero(t, code, stderr)
			require.Regexp(t, `^switched from ps-sync to allreduce after step [1-9]\d*\n$`, stdout)
			code, again, stderr := result("strategy", "allreduce", view.Cluster)
			require.Zero(t, code, stderr)
			require.Equal(t, strings.Replace(stdout, "switched from ps-sync to allreduce after", "the job has used allreduce since", 1), again)
			code, stdout, stderr = result("strategy", "ps-sync", view.Gossip, "--json")
			require.Zero(t, code, stderr)
			require.Regexp(t, `"from":\s*"allreduce",\s*"strategy":\s*"ps-sync",\s*"steps":\s*[1-9]`, stdout)
			code, _, stderr = result("strategy", "allreduce", view.Gossip, "--key-file", other, "--timeout", "5s")
			require.Equal(t, 1, code)
			require.Contains(t, stderr, "key")

			require.Equal(t, 130, r.interrupt(t, ended), "%s", r.stderr)
			require.Len(t, only(r.seen, "switched"), 2)
			require.NotContains(t, r.stderr.String(), "lost")
			last := only(r.seen, "step")
			for i, e := range last {
				require.Equal(t, i+1, e.Step)
			}
			steps := strconv.Itoa(len(last) + 5)
			resumed := train(t, append(args, "--resume", out, "--steps", steps)...)
			whole := train(t, small(t, "--workers", "2", "--steps", steps)...)
			require.Equal(t, whole[len(whole)-1].Weights, resumed[len(resumed)-1].Weights)
		})
	}
}

// Jobs that cannot switch say why, and train on.
func TestStrategyRefused(t *testing.T) {
	for want, how := range map[string][]string{
		"the job uses diloco, and only allreduce and ps-sync can be switched": {"--strategy", "diloco"},
		"gradients are compressed, which parameter servers do not support":    {"--compress", "int8"},
	} {
		r := begin(t, small(t, append(how, "--workers", "2")...)...)
		ended := r.background()
		code, stdout, stderr := result("strategy", "ps-sync")
		require.Equal(t, 1, code)
		require.Empty(t, stdout)
		require.Equal(t, "ringtrain: "+want+"\n", stderr)
		require.Equal(t, 130, r.interrupt(t, ended))
	}
	for want, args := range map[string][]string{
		"strategy needs a NAME, one of allreduce, ps-sync": {"strategy"},
		"one of allreduce, ps-sync, before the job":        {"strategy", "diloco"},
		"no job of yours is running":                       {"strategy", "allreduce"},
		"--timeout must be greater than 0":                 {"strategy", "allreduce", "--timeout", "0s"},
	} {
		code, stdout, stderr := result(args...)
		require.Equal(t, 2, code, stderr)
		require.Contains(t, stderr, want)
		require.Empty(t, stdout)
	}
}
