package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/trace"
)

// statusOf is the JSON that "status" prints for a job.
type statusOf struct {
	Epoch uint64
	Size  int
	Step  uint64
	Ranks []statusRank
	Chain *trace.Chain
}

type statusRank struct {
	Rank    int
	Silent  string
	Stopped bool
	PID     int
	Call    *trace.Call
	Waiting *trace.Waiting
	Skew    trace.Skew
	Calls   []trace.Call
}

func askStatus(t *testing.T, args ...string) statusOf {
	code, stdout, stderr := result(append([]string{"status"}, args...)...)
	require.Zero(t, code, stderr)
	var s statusOf
	require.NoError(t, json.Unmarshal([]byte(stdout), &s), stdout)
	return s
}

// One of three workers is suspended. Status shows in time which rank waits for which,
// and after the break there are flight records of the survivors next to --out.
func TestStatusOfAJobThatHangs(t *testing.T) {
	out := t.TempDir()
	r := begin(t, small(t, "--workers", "3", "--steps", "1000000", "--out", out)...)
	pids := r.workers(t)
	require.Len(t, pids, 3)
	defer func() { _ = syscall.Kill(pids[1], syscall.SIGKILL) }()
	view := only(r.seen, "view")[0]
	require.True(t, strings.HasPrefix(r.stderr.String(), fmt.Sprintf("cluster %s on %s, 3 workers\n", view.Cluster, view.Gossip)), "%s", r.stderr)

	// Keep reading, or the workers would wait for the pipe.
	ended := make(chan int, 1)
	go func() {
		_, _ = io.Copy(io.Discard, r.out)
		_ = r.Wait()
		ended <- r.ProcessState.ExitCode()
	}()
	var s statusOf
	for range 10 { // on a busy machine a worker may not answer in time
		s = askStatus(t, "--json", "--calls", "3") // without arguments: the only job
		if !slices.ContainsFunc(s.Ranks, func(r statusRank) bool { return r.Silent != "" }) {
			break
		}
	}
	require.Equal(t, 3, s.Size)
	require.EqualValues(t, 1, s.Epoch)
	require.Positive(t, s.Step)
	for rank, one := range s.Ranks {
		require.Equal(t, rank, one.Rank)
		require.Empty(t, one.Silent, "rank %d: %s", rank, r.stderr)
		require.Equal(t, pids[rank], one.PID)
		require.Len(t, one.Calls, 3)
	}

	require.Len(t, members(t, view.Gossip).Members, 3, "its cluster is known")

	require.NoError(t, syscall.Kill(pids[1], syscall.SIGSTOP))
	begun := time.Now()
	s = askStatus(t, view.Cluster, "--json")
	require.Less(t, time.Since(begun), 5*time.Second)
	require.True(t, s.Ranks[1].Stopped)
	require.Equal(t, pids[1], s.Ranks[1].PID)
	require.Equal(t, fmt.Sprintf("stopped: process %d is suspended; kill -CONT %d resumes it", pids[1], pids[1]), s.Ranks[1].Silent)
	for _, rank := range []int{0, 2} {
		require.Empty(t, s.Ranks[rank].Silent)
		require.NotNil(t, s.Ranks[rank].Call, "it waits in a call")
	}
	require.NotNil(t, s.Chain)
	require.Equal(t, 1, s.Chain.Ranks[len(s.Chain.Ranks)-1], "the root is the stopped one")
	require.Equal(t, s.Ranks[1].Silent, s.Chain.Why)
	require.Greater(t, s.Ranks[1].Skew.LateMs+s.Ranks[1].Skew.SlowMs, 50., "the others waited for it")

	select {
	case code := <-ended:
		require.Equal(t, 1, code)
	case <-time.After(time.Minute):
		require.Fail(t, "the job has not ended")
	}
	code, _, stderr := result("status")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "no job of yours is running", "its entry is gone")
	records, err := filepath.Glob(filepath.Join(out, "flight-*-[02].json"))
	require.NoError(t, err)
	require.Len(t, records, 2, "%s", r.stderr)
	for _, path := range records {
		require.Contains(t, r.stderr.String(), "flight record: "+path)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var record trace.Record
		require.NoError(t, json.Unmarshal(text, &record))
		last := record.Calls[len(record.Calls)-1]
		require.Contains(t, last.Error, "rank 1")
		require.Greater(t, last.TookMs, 1000.)
	}
}

// A worker that receives SIGQUIT writes its flight record and ends as Go programs do.
func TestQuitLeavesTheRecord(t *testing.T) {
	out := t.TempDir()
	r := begin(t, small(t, "--workers", "2", "--out", out)...)
	pids := r.workers(t)
	require.NoError(t, syscall.Kill(pids[1], syscall.SIGQUIT))
	require.Equal(t, 1, r.finish(t))
	requireGone(t, pids)
	records, err := filepath.Glob(filepath.Join(out, "flight-*-1.json"))
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.Contains(t, r.stderr.String(), "flight record: "+records[0])
	require.Contains(t, r.stderr.String(), "SIGQUIT: quit", "the runtime prints its goroutines after that")
}

// The trace of a killed worker is valid JSON, and its metrics were served.
func TestTaps(t *testing.T) {
	dir, addr := filepath.Join(t.TempDir(), "traces"), freeAddr(t)
	r := begin(t, small(t, "--workers", "1", "--trace", dir, "--metrics", addr)...)
	answer, err := http.Get("http://" + addr + "/metrics")
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Regexp(t, `ringtrain_steps_total{rank="0"} [1-9]`, string(text))
	require.Regexp(t, `ringtrain_calls_total{kind="AllReduce",rank="0"} [1-9]`, string(text))
	require.NoError(t, r.Process.Kill())
	_, _ = io.Copy(io.Discard, r.out)
	_ = r.Wait()
	file, err := os.ReadFile(filepath.Join(dir, "trace-0.json"))
	require.NoError(t, err)
	var events []map[string]any
	require.NoError(t, json.Unmarshal(file, &events), "the process was killed in the middle")
	require.Greater(t, len(events), 12)

	both := filepath.Join(t.TempDir(), "both")
	train(t, small(t, "--steps", "3", "--workers", "2", "--transport", "inproc", "--trace", both)...)
	for rank := range 2 {
		require.FileExists(t, filepath.Join(both, fmt.Sprintf("trace-%d.json", rank)))
	}
}

func TestStatusUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"no job of yours is running":   {"status"},
		"use the HOST:PORT":            {"status", "nowhere"},
		"must be HOST:PORT":            {"status", "127.0.0.1:1,nowhere"},
		"--calls must be from 0 to 64": {"status", "127.0.0.1:1", "--calls", "65"},
		"must be ADDRESS:PORT":         {"train", config(t), "--metrics", "9400"},
		"a number from 1 to 65535":     {"train", config(t), "--metrics", "127.0.0.1:0"},
		"--trace is empty":             {"train", config(t), "--trace", ""},
	} {
		code, stdout, stderr := result(args...)
		require.Equal(t, 2, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, want)
		require.Empty(t, stdout)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	code, _, stderr := result("status", silent.Addr().String(), "--timeout", "200ms")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no answer within 200ms")
}
