package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/graph"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// asCommand makes the test binary the example, and its workers, too.
const asCommand = "RINGTRAIN_TEST_GORGONIA"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(collectivetest.InOwnDirectories(m).Run())
}

// run runs the example as a process and returns its output, its errors and its exit code.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "XDG_RUNTIME_DIR="+t.TempDir())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// A result is the last event of a run, or what eval prints.
type result struct {
	Loss, Accuracy float64
	Weights        string `json:"weights_sha256"`
}

// trained trains and returns the result.
func trained(t *testing.T, more ...string) (r result) {
	t.Helper()
	stdout, stderr, code := run(t, append([]string{"train", "highway.cfg", "--json"}, more...)...)
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &r))
	require.Len(t, r.Weights, 64)
	return r
}

// Four workers take the steps of one worker with four micro-batches, a resumed run
// those of one that was not interrupted, and what they save can be evaluated.
func TestSameBits(t *testing.T) {
	short := []string{"--batch", "32", "--evaluation.frequency", "0", "--optimizer.learn_rate", "0.01"}
	four := trained(t, append(short, "--workers", "4", "--steps", "60")...)
	require.Greater(t, four.Accuracy, .9)
	one := trained(t, append(short, "--workers", "1", "--accumulate", "4", "--steps", "60")...)
	require.Equal(t, four.Weights, one.Weights)
	dir := t.TempDir()
	half := trained(t, append(short, "--workers", "4", "--steps", "30", "--out", dir)...)
	require.NotEqual(t, four.Weights, half.Weights)
	resumed := trained(t, append(short, "--workers", "4", "--steps", "60", "--resume", dir, "--out", dir)...)
	require.Equal(t, four, resumed)

	stdout, stderr, code := run(t, "eval", dir, "--json")
	require.Zero(t, code, stderr)
	var r result
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Equal(t, four.Weights, r.Weights)
	require.InDelta(t, four.Accuracy, r.Accuracy, 1e-9)
}

// A graph that does not fit is a mistake in the config, with its line.
func TestMisfit(t *testing.T) {
	text, err := os.ReadFile("highway.cfg")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "a.cfg")
	squares := strings.Replace(string(text), "@layers = \"Dropout.v1\"\nrate = 0.1", "@layers = \"Reshape.v1\"\nshape = [8, 8]", 1)
	require.NoError(t, os.WriteFile(file, []byte(squares), 0o600))
	_, stderr, code := run(t, "train", file, "--workers", "2")
	require.Equal(t, 2, code)
	require.Regexp(t, `a\.cfg:\d+: model\.\*\.highway2: .*building its graph for 2 rows panicked: .*\n$`, stderr)
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
}

func TestHighwayGradients(t *testing.T) {
	layer := nn.Chain(&nn.Linear{Out: 5}, &graph.Layer{Build: highway})
	nntest.CheckGradients(t, cpu.New(cpu.Options{}), layer, []int{4}, 6)
}
