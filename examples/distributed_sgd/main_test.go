package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

// asCommand makes the test binary the example, and its processes, too.
const asCommand = "RINGTRAIN_TEST_DISTRIBUTED_SGD"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(collectivetest.InOwnDirectories(m).Run())
}

// start runs the example as a process and returns its output, its errors and its exit code.
func start(t *testing.T, args ...string) (stdout, stderr string, code int) {
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

var number = regexp.MustCompile(`[0-9.]+(e-?[0-9]+)?`)

// waiting is the line of processes that start slowly.
var waiting = regexp.MustCompile(`(?m)^waiting for .*\n`)

// Processes and goroutines print the same lines, in the order of Ray's documentation, and
// train the same weights.
func TestLinesAndWeights(t *testing.T) {
	const step = "compute grad interior time #\ncompute grad interior time #\ncompute all grads time #\ngrad reduce time #\n" +
		"apply grad interior time #\napply grad interior time #\napply all grads time #\nCurrent loss #\n"
	var sums []string
	for _, more := range [][]string{nil, {"--processes"}} {
		dir := t.TempDir()
		out, trace := filepath.Join(dir, "w.safetensors"), filepath.Join(dir, "trace.json")
		args := append([]string{"--steps", "3", "--batch", "4", "--seed", "3", "--out", out, "--trace", trace}, more...)
		stdout, stderr, code := start(t, args...)
		require.Zero(t, code, stderr)
		stdout = waiting.ReplaceAllString(stdout, "")
		lines := number.ReplaceAllString(strings.ReplaceAll(stdout, dir, "DIR"), "#")
		lines = strings.NewReplacer("p#", "p50", "DIR/w#safetensors", "DIR/w.safetensors").Replace(lines)
		require.Equal(t, "warmup time #\n"+strings.Repeat(step, 3)+"test loss # accuracy #\nDIR/w.safetensors: # tensors with # values\n"+
			"compute grad interior time p50 # p50 #\ncompute all grads time p50 # p50 #\ngrad reduce time p50 # p50 #\n"+
			"apply grad interior time p50 # p50 #\napply all grads time p50 # p50 #\n", lines)
		f, err := checkpoint.Load(out)
		require.NoError(t, err)
		sum, err := checkpoint.Hash(f.Tensors)
		require.NoError(t, err)
		sums = append(sums, sum)
		text, err := os.ReadFile(trace)
		require.NoError(t, err)
		var events []map[string]any
		require.NoError(t, json.Unmarshal(text, &events))
		require.Len(t, events, 2*2+3*2*3, "names, and three stages of two workers in each step")
	}
	require.Equal(t, sums[0], sums[1])
}

// The trained weights make predictions for other images.
func TestFutureData(t *testing.T) {
	out := filepath.Join(t.TempDir(), "w.safetensors")
	stdout, stderr, code := start(t, "--fixed", "--batch", "5", "--devices", "1", "--steps", "40", "--verbose=false", "--out", out)
	require.Zero(t, code, stderr)
	var first, last float64
	losses := regexp.MustCompile(`Current loss ([0-9.]+)`).FindAllStringSubmatch(stdout, -1)
	require.Len(t, losses, 40)
	_, err := fmt.Sscan(losses[0][1]+" "+losses[39][1], &first, &last)
	require.NoError(t, err)
	require.Less(t, last, first/2, "rows that stay the same are learned by heart")

	b := cpu.New(cpu.Options{})
	defer b.Close()
	m, err := nn.NewClassifier(b, resnet(), []int{channels * side * side}, classes, 1)
	require.NoError(t, err)
	f, err := checkpoint.Load(out)
	require.NoError(t, err)
	require.Len(t, f.Tensors, len(m.Params().List))
	for _, w := range f.Tensors {
		require.NoError(t, m.Params().SetWeight(w.Name, w.Tensor))
	}
	pixels := make([]float32, 2*channels*side*side)
	for i := range pixels {
		pixels[i] = rand.Float32()
	}
	probabilities, err := m.Predict(t.Context(), tensor.New(tensor.WithShape(2, channels*side*side), tensor.WithBacking(pixels)))
	require.NoError(t, err)
	require.Equal(t, tensor.Shape{2, classes}, probabilities.Shape())
}

// Files of CIFAR-10 take the place of generated images.
func TestCIFAR(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"} {
		record := append([]byte{7}, make([]byte, 3*32*32)...)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".bin"), append(record, record...), 0o600))
	}
	stdout, stderr, code := start(t, "--data", "cifar:"+dir, "--batch", "2", "--steps", "20", "--verbose=false")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "accuracy 1.0000", "all images have one class")
}

func TestMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		`--data must be generated or cifar:DIR, not "digits"`:   {"--data", "digits"},
		`data_batch_1.bin: no such file or directory; the dire`: {"--data", "cifar:" + t.TempDir()},
		`--data must be generated or cifar:DIR, not "none"`:     {"--data", "none", "--processes"},
		"sgd: Options.Workers must be at least 1, not 0":        {"--workers", "0"},
		"sgd: Options.Devices must be at least 1, not 0":        {"--devices", "0", "--processes"},
		"flag provided but not defined: -rows":                  {"--rows", "1"},
		`unexpected argument "cifar"`:                           {"cifar"},
		"nosuch/trace: no such file or directory":               {"--trace", "nosuch/trace"},
	} {
		_, stderr, code := start(t, args...)
		require.Equal(t, 2, code, want)
		require.Contains(t, stderr, want)
	}
	_, stderr, code := start(t, "--help")
	require.Zero(t, code)
	require.Contains(t, stderr, "--data SOURCE"[1:])
	stdout, stderr, code := start(t, "--steps", "1", "--batch", "2", "--processes", "--out", "nosuch/w")
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "test loss")
	require.Contains(t, stderr, "checkpoint nosuch/w: open: no such file or directory")
}
