package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// asCommand makes the test binary the example, and its workers, too.
const asCommand = "RINGTRAIN_TEST_CUSTOM"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(collectivetest.InOwnDirectories(m).Run())
}

// custom is the example as a process.
func custom(t *testing.T, stdin string, args ...string) *exec.Cmd {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "XDG_RUNTIME_DIR="+t.TempDir())
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

// output returns what the example prints.
func output(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := custom(t, stdin, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%v: %s", args, stderr.String())
	return string(out)
}

// refused returns why the example refuses a command.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	cmd := custom(t, "", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.Error(t, cmd.Run())
	require.Equal(t, 2, cmd.ProcessState.ExitCode(), stderr.String())
	require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
	return stderr.String()
}

// A result is the last event of a run, or what eval prints.
type result struct {
	Loss, MAE float64
	Rows      int
	Weights   string `json:"weights_sha256"`
}

func parsed(t *testing.T, line string) (r result) {
	require.NoError(t, json.Unmarshal([]byte(line), &r), line)
	require.Len(t, r.Weights, 64)
	return r
}

// waves are the arguments of a run.
func waves(more ...string) []string {
	return append([]string{"train", "wave.cfg", "--data", "wave", "--json"}, more...)
}

// trained trains and returns the result.
func trained(t *testing.T, more ...string) result {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(output(t, "", waves(more...)...)), "\n")
	return parsed(t, lines[len(lines)-1])
}

// The task learns the curve, whatever the outliers say.
func TestCurve(t *testing.T) {
	got := trained(t, "--workers", "2", "--steps", "1000")
	require.Less(t, got.MAE, .15)
	squares := trained(t, "--workers", "2", "--steps", "1000", "--task.loss.delta", "100")
	require.Greater(t, squares.MAE, 2*got.MAE, "outliers count as much as other points")
	builtIn := trained(t, "--workers", "2", "--steps", "1000", "--task.loss.@losses", "HuberLoss.v1")
	require.InDelta(t, got.MAE, builtIn.MAE, .02)
}

// Four workers take the steps of one worker with four micro-batches, and a resumed
// training those of one that was not interrupted.
func TestSameBits(t *testing.T) {
	short := []string{"--batch", "16", "--evaluation.frequency", "0"}
	four := trained(t, append(short, "--workers", "4", "--steps", "40")...)
	one := trained(t, append(short, "--workers", "1", "--accumulate", "4", "--steps", "40")...)
	require.Equal(t, four.Weights, one.Weights)
	require.InDelta(t, four.MAE, one.MAE, 1e-6, "float32 sums of other batches")
	dir := t.TempDir()
	half := trained(t, append(short, "--workers", "4", "--steps", "20", "--out", dir)...)
	require.NotEqual(t, four.Weights, half.Weights)
	require.Equal(t, four, trained(t, append(short, "--workers", "4", "--steps", "40", "--resume", dir)...))
}

// eval prints the metric of the task, and predict its fields, for rows of files and of
// stdin. A bad line comes after the predictions before it.
func TestTrained(t *testing.T) {
	dir := t.TempDir()
	want := trained(t, "--workers", "1", "--steps", "50", "--out", dir)
	got := parsed(t, output(t, "", "eval", dir, "--json"))
	require.Equal(t, 500, got.Rows)
	require.InDelta(t, want.MAE, got.MAE, 1e-6)
	require.Equal(t, want.Weights, got.Weights)
	require.Regexp(t, `^mae \d+\.\d{4}, loss \d+\.\d{4} on 500 rows of wave\nweights sha256 [0-9a-f]{64}\n$`, output(t, "", "eval", dir))

	all := output(t, "", "predict", dir)
	require.Equal(t, 500, strings.Count(all, "\n"))
	require.Regexp(t, `^0 -1\.0000 [+-]\d+\.\d{4}\n`, all)

	var lines strings.Builder
	for i := range 600 { // more than a batch
		fmt.Fprintln(&lines, float32(i)/600)
	}
	file := filepath.Join(dir, "some.times")
	require.NoError(t, os.WriteFile(file, []byte(lines.String()), 0o600))
	fromFile := output(t, "", "predict", dir, file, "--format", "csv")
	require.Equal(t, fromFile, output(t, lines.String(), "predict", dir, "-", "--input-format", "times", "--format", "csv"))
	rows, err := csv.NewReader(strings.NewReader(fromFile)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 601)
	require.Equal(t, []string{"row", "t", "y"}, rows[0])
	require.Equal(t, []string{"599", "0.99833333"}, rows[600][:2])

	bad := custom(t, lines.String()+"2\n0\n", "predict", dir, "-", "--input-format", "times", "--json")
	var stderr bytes.Buffer
	bad.Stderr = &stderr
	out, err := bad.Output()
	require.Error(t, err)
	require.Equal(t, 1, bad.ProcessState.ExitCode())
	require.Equal(t, 600, strings.Count(string(out), "\n"))
	require.Equal(t, "ringtrain: stdin:601: expected a number from -1 to 1, got \"2\"\n", stderr.String())
}

// The commands explain the names of this program, and name the user's mistakes.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"Huber.v1": "largest error that is squared", "Sine.v1": "frequency", "curve.v1": "a loss (@losses)", "": "curve.v1, image_classification.v1",
	} {
		require.Contains(t, output(t, "", append([]string{"config", "explain"}, strings.Fields(name)...)...), want)
	}
	require.Contains(t, output(t, "", "config", "fill", "wave.cfg"), "omega = 1.0")
	for want, args := range map[string][]string{
		`the task curve.v1 needs points; data "digits" has none`:                                   {"train", "wave.cfg"},
		"--task.loss.delta: must be greater than 0, not -1":                                        waves("--task.loss.delta", "-1"),
		"the rows are for the task curve.v1, which this config does not describe: add a section [": {"train", "../mnist.cfg", "--data", "wave"},
		"wave.cfg:19: model: chain.v1: it makes rows of shape [32], but the task needs [1]":        waves("--model.*.curve.@layers", "Sine.v1"),
		"--model.*.curve.nO: ":                        waves("--model.*.curve.nO", "2"),
		"--data: unknown data \"wave:x\"; use wave":   {"train", "wave.cfg", "--data", "wave:x"},
		"times:FILE (a number from -1 to 1 per line)": {"predict", "nosuch", "--data", "waves"},
	} {
		if args[0] == "predict" {
			dir := t.TempDir()
			trained(t, "--workers", "1", "--steps", "1", "--out", dir)
			args[1] = dir
		}
		require.Contains(t, refused(t, args...), want)
	}
}

// The gradients of the layer are those of its function.
func TestSineGradients(t *testing.T) {
	nntest.CheckGradients(t, cpu.New(cpu.Options{}), nn.Chain(&nn.Linear{Out: 3}, &sine{omega: 3}), []int{4}, 6)
}

// Layers after it learn where documents end.
func TestSineKeepsLengths(t *testing.T) {
	y, _ := (&sine{omega: 3}).Forward(&nn.Pass{Backend: cpu.New(cpu.Options{})}, nn.Tensor{Shape: []int{3, 1}, Data: nn.Host(make([]float32, 3)), Lengths: []int{2, 1}})
	require.Equal(t, []int{2, 1}, y.Lengths)
}

// The loss, its gradient and the absolute errors are those of the formulas, at small and
// large errors.
func TestHuber(t *testing.T) {
	b := cpu.New(cpu.Options{})
	const n, delta = 40, .7
	random := rand.New(rand.NewPCG(1, 2))
	y, target := b.Alloc(n), b.Alloc(n)
	var loss, absolute float64
	var gradients [n]float64
	for i := range n {
		y.Float32s()[i], target.Float32s()[i] = float32(random.NormFloat64()), float32(random.NormFloat64())
		e := float64(y.Float32s()[i]) - float64(target.Float32s()[i])
		gradients[i] = min(max(e, -delta), delta)
		if math.Abs(e) <= delta {
			loss += e * e / 2
		} else {
			loss += delta * (math.Abs(e) - delta/2)
		}
		absolute += math.Abs(e)
	}
	d, sums := b.Alloc(n), b.Alloc(2)
	huber{delta}.OfValues(b, d, sums.Slice(0, 1), y, target)
	addAbsolute(b, sums.Slice(1, 2), y, target)
	require.InDelta(t, loss, sums.Float32s()[0], 1e-4)
	kernel, same := b.Alloc(1), b.Alloc(n)
	nn.HuberError{Delta: delta}.OfValues(b, same, kernel, y, target)
	require.InDelta(t, loss, kernel.Float32s()[0], 1e-4)
	require.InDeltaSlice(t, same.Float32s(), d.Float32s(), 1e-5)
	require.InDelta(t, absolute, sums.Float32s()[1], 1e-4)
	for i, want := range gradients {
		require.InDelta(t, want, d.Float32s()[i], 1e-5)
	}
}

// The model's gradients are those of its loss, and it can do without rows.
func TestModel(t *testing.T) {
	b := cpu.New(cpu.Options{})
	from := catalog.Blueprint{Backend: b, Layer: nn.Chain(&nn.Linear{Out: 5}, &sine{omega: 2}, &nn.Linear{}), In: []int{1}, Out: []int{1}, Seed: 3}
	m, err := newCurve(from, huber{.5})
	require.NoError(t, err)
	batch := newPoints(b, nil, nil, 7)
	for i := range 7 {
		batch.t.Data.Float32s()[i], batch.y.Data.Float32s()[i] = float32(i)/7-.4, float32(i%3)
	}
	nntest.CheckModelGradients[points](t, m, &nn.Pass{Backend: b, Train: true}, batch)
	_, weight, err := m.Learn(&nn.Pass{Backend: b}, newPoints(b, nil, nil, 0))
	require.NoError(t, err)
	require.Zero(t, weight)
	from.Layer, from.In = &sine{omega: 1}, []int{2}
	_, err = newCurve(from, huber{1})
	require.ErrorContains(t, err, "nn: model: it makes rows of shape [2], but the task needs [1]")
	problem, err := curveTask(huber{1}).Fit(wave{}, func() (nn.Layer, error) { return &nn.Linear{Out: 2}, nil })
	require.NoError(t, err)
	_, err = problem.Declare()
	require.ErrorContains(t, err, "2", "before anything starts")
}

// Every process has the same rows.
func TestWave(t *testing.T) {
	one, err := wave{}.open()
	require.NoError(t, err)
	other, err := wave{}.open()
	require.NoError(t, err)
	require.Equal(t, one.Sum, other.Sum)
	require.NoError(t, register(catalog.New()))
}
