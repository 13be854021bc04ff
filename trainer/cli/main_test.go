package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/cli"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// asCommand makes the test binary act as the ringtrain command, also for the launcher's
// workers.
const asCommand = "RINGTRAIN_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(cli.Main(catalog.New(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(collectivetest.InOwnDirectories(m).Run())
}

// smallDir is a directory with a small set of digits, generated once.
var smallDir = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "ringtrain-digits-")
	if err != nil {
		return ""
	}
	train, test := data.Generate(data.DigitsOptions{Train: 1500, Test: 300, Side: 14})
	if data.WriteMNIST(dir, train, test) != nil {
		return ""
	}
	return dir
})

func openSmall() (*data.Set, error) { return data.OpenMNIST(smallDir()) }

func config(t *testing.T) string {
	path, err := filepath.Abs("../../examples/mnist.cfg")
	require.NoError(t, err)
	return path
}

// small returns the arguments of a short training.
func small(t *testing.T, more ...string) []string {
	require.NotEmpty(t, smallDir())
	return append([]string{"train", config(t), "--data", "mnist:" + smallDir(), "--json", "--model.hidden_width", "32"}, more...)
}

// command returns ringtrain as a process.
func command(t *testing.T, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// event is any event.
type event struct {
	Event    string
	Epoch    int
	Members  []struct{ Rank int }
	Step     int
	Steps    int
	Workers  int
	Loss     float64
	Accuracy float64
	Seconds  float64
	Rows     int
	Samples  int
	Rank     int
	Node     string
	SeenBy   int     `json:"seen_by"`
	AfterMs  float64 `json:"after_ms"`
	Op       string
	Phase    string
	Path     string
	BLAS     string
	Plan     string
	Compress string
	Device   string
	Cluster  string
	Gossip   string
	Error    string
	Weights  string  `json:"weights_sha256"`
	Rate     float64 `json:"samples_per_second"`

	WireBytes int     `json:"wire_bytes"`
	Ratio     float64 `json:"compression_ratio"`

	Sparse      string
	SparseSteps int `json:"sparse_steps"`
	AsRows      int `json:"as_rows"`
}

func events(t *testing.T, stdout []byte) []event {
	var out []event
	for line := range bytes.Lines(stdout) {
		var e event
		require.NoError(t, json.Unmarshal(line, &e), "%s", line)
		out = append(out, e)
	}
	return out
}

func only(all []event, kind string) []event {
	var out []event
	for _, e := range all {
		if e.Event == kind {
			out = append(out, e)
		}
	}
	return out
}

// train trains to the end and returns the events. The last one is the result.
func train(t *testing.T, args ...string) []event {
	t.Helper()
	cmd := command(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s", stderr.String())
	all := events(t, stdout.Bytes())
	require.NotEmpty(t, all)
	require.Equal(t, "result", all[len(all)-1].Event)
	return all
}

// result runs a command in this process.
func result(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = cli.Main(catalog.New(), args, &out, &err)
	return code, out.String(), err.String()
}

// A library that cannot be used is a mistake too, and is found before any worker
// starts.
func TestUselessOpenBLAS(t *testing.T) {
	file := filepath.Join(t.TempDir(), "garbage.so")
	require.NoError(t, os.WriteFile(file, []byte("no library"), 0o666))
	for _, args := range [][]string{{"train", config(t)}, {"bench", "scaling", "--config", config(t), "--workers", "1"}} {
		cmd := command(t, append(args, "--data", "mnist:"+smallDir())...)
		cmd.Env = append(cmd.Env, "RINGTRAIN_OPENBLAS="+file)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, 2, cmd.ProcessState.ExitCode(), "%s", out)
		require.Contains(t, string(out), "RINGTRAIN_OPENBLAS is "+file)
		require.Equal(t, 1, strings.Count(string(out), "\n"), "one line: %s", out)
	}
}

// Every mistake is one line and exit code 2.
func TestUsageErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		return path
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"train needs a CONFIG file, such as examples/mnist.cfg", []string{"train"}},
		{"train takes one CONFIG file, not 2", []string{"train", "a.cfg", "b.cfg"}},
		{"no such file", []string{"train", "nosuch.cfg"}},
		{`unknown command "bogus"`, []string{"bogus"}},
		{"unknown flag: --nosuch", []string{"train", config(t), "--nosuch"}},
		{"--workers must be at least 1", []string{"train", config(t), "--workers", "0"}},
		{"--workers must be at least 1", []string{"train", config(t), "--workers", "-3"}},
		{"--steps must be at least 1", []string{"train", config(t), "--steps", "0"}},
		{"--nodes must be at least 1", []string{"train", config(t), "--nodes", "0"}},
		{"--transport must be one of auto, tcp, shm, inproc, not \"udp\"", []string{"train", config(t), "--transport", "udp"}},
		{"--log-level must be", []string{"train", config(t), "--log-level", "loud"}},
		{"inproc runs in one process", []string{"train", config(t), "--transport", "inproc", "--nodes", "2"}},
		{"--join needs --nodes", []string{"train", config(t), "--join", "127.0.0.1:1"}},
		{"must be HOST:PORT", []string{"train", config(t), "--nodes", "2", "--join", "127.0.0.1"}},
		{"--bind must be an address of this machine", []string{"train", config(t), "--bind", "localhost:x"}},
		{"no such address", []string{"train", config(t), "--bind", "192.0.2.1"}},
		{`did you mean "batch_size"?`, []string{"train", config(t), "--training.batchsize", "3"}},
		{`did you mean "training"?`, []string{"train", config(t), "--trainin.batch_size", "3"}},
		{"at least 1", []string{"train", config(t), "--training.batch_size", "0"}},
		{"expected a whole number", []string{"train", config(t), "--training.batch_size", "x"}},
		{"needs more rows than the data", []string{"train", config(t), "--training.batch_size", "20001"}},
		{"must be at least 0 and less than 1, not 1.5", []string{"train", config(t), "--model.dropout", "1.5"}},
		{`no "foo.v1"`, []string{"train", config(t), "--model.@layers", "foo.v1"}},
		{"beta1", []string{"train", config(t), "--optimizer.beta1", "1"}},
		{"more than ray.object_store_memory", []string{"train", config(t), "--ray.object_store_memory", "1000"}},
		{`unknown data "foo"`, []string{"train", config(t), "--data", "foo"}},
		{"no such file", []string{"train", config(t), "--data", "mnist:" + filepath.Join(dir, "none")}},
		{"train-images-idx3-ubyte", []string{"train", config(t), "--data", "mnist:" + dir}},
		{"bad.cfg:2", []string{"train", file("bad.cfg", "[training]\nfoo\n")}},
		{"section [model] is not defined", []string{"train", file("empty.cfg", "[training]\n")}},
		{"is not a file", []string{"train", os.DevNull}},
		{"with --bind or --cluster", []string{"train", config(t), "--transport", "inproc", "--cluster", "x"}},
		{"it does not read a config", []string{"data", "digits", dir, "--training.batch_size", "3"}},
		{"not a directory", []string{"train", config(t), "--out", file("plain", "") + "/x"}},
		{"eval needs a CHECKPOINT", []string{"eval"}},
		{"no such file", []string{"eval", filepath.Join(dir, "nosuch")}},
		{"eval takes no --training.batch_size", []string{"eval", dir, "--training.batch_size", "3"}},
		{"did you mean --workers?", []string{"train", config(t), "--worker", "2"}},
		{"--workers must be a whole number, not \"abc\"", []string{"train", config(t), "--workers", "abc"}},
		{"--seed must be a whole number, at least 0, not \"-1\"", []string{"train", config(t), "--seed", "-1"}},
		{"--workers 99999999999999999999 is out of range", []string{"train", config(t), "--workers", "99999999999999999999"}},
		{"at most 1024 on one machine", []string{"train", config(t), "--workers", "1025", "--batch", "1", "--ray.object_store_memory", "0"}},
		{"--nodes must be at most", []string{"train", config(t), "--nodes", "9223372036854775807"}},
		{"more than 8192 ranks", []string{"train", config(t), "--nodes", "9", "--workers", "1000"}},
		{"needs more rows than the data", []string{"train", config(t), "--batch", "4611686018427387904", "--accumulate", "4"}},
		{"--join is empty", []string{"train", config(t), "--nodes", "2", "--join", ""}},
		{"must be HOST:PORT", []string{"train", config(t), "--nodes", "2", "--join", ":7946"}},
		{"--bind is empty", []string{"train", config(t), "--bind", ""}},
		{"--cluster is empty", []string{"train", config(t), "--cluster", ""}},
		{"--order is empty", []string{"train", config(t), "--order", ""}},
		{"--out is empty", []string{"train", config(t), "--out", ""}},
		{"more than the", []string{"train", config(t), "--model.hidden_width", "9000000000000"}},
		{"more than the", []string{"data", "digits", dir, "--train", "99999999999"}},
		{"more than the", []string{"estimate", config(t), "--batch", "9223372036854775807"}},
		{"at most 8192, as many", []string{"estimate", config(t), "--workers", "9223372036854775807"}},
		{"at most 8192, as many", []string{"estimate", config(t), "--workers", "8193", "--compress", "int8"}},
		{`unknown command "foo"`, []string{"completion", "foo"}},
		{`unknown command "foo"`, []string{"help", "foo"}},
		{`unknown command "trian"; did you mean ringtrain train?`, []string{"trian"}},
		{"leave out --json", []string{"doctor", "--listen", "127.0.0.1:0", "--json"}},
		{"data digits needs a directory", []string{"data", "digits"}},
		{"--train must be at least 1", []string{"data", "digits", dir, "--train", "0"}},
		{"data ner needs a directory", []string{"data", "ner"}},
		{"--sentences must be from 1 to", []string{"data", "ner", dir, "--sentences", "0"}},
		{"--format must be conll, iob or jsonl, not \"spacy\"", []string{"data", "ner", dir, "--format", "spacy"}},
	} {
		code, stdout, stderr := result(c.args...)
		require.Equal(t, 2, code, "%v: %s", c.args, stderr)
		require.Contains(t, stderr, c.want, "%v", c.args)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.Empty(t, stdout)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"train", "--help"}, {"eval", "-h"}, {"data", "digits", "-h"}, {"data"}, {}, {"completion"}, {"help", "train"},
		{"bench", "collective", "-h"}, {"members", "-h"}, {"doctor", "-h"}, {"version", "-h"}} {
		code, stdout, stderr := result(args...)
		require.Equal(t, 0, code)
		require.Contains(t, stdout, "Usage:")
		require.Empty(t, stderr)
	}
	_, stdout, _ := result("train", "--help")
	for _, flag := range []string{"--workers", "--data", "--out", "--seed", "--steps", "--faithful-accumulate", "--transport", "--nodes", "--join", "--bind", "--cluster", "--json"} {
		require.Contains(t, stdout, flag)
	}
	_, stdout, _ = result("--version")
	require.Contains(t, stdout, "ringtrain version")
}
