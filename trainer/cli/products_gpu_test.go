//go:build gpu && cgo && linux

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Products in bfloat16 train to nearly the losses of the CPU, and the output says so.
func TestGPUBF16(t *testing.T) {
	want := train(t, fewSteps(t, "--workers", "1", "--device", "cpu")...)
	got, _ := trainOnGPUs(t, fewSteps(t, "--workers", "2", "--share-gpu", "--batch", "8", "--device", "cuda", "--bf16")...)
	a, b := only(want, "step"), only(got, "step")
	require.Len(t, b, len(a))
	for i := range a {
		require.InDelta(t, a[i].Loss, b[i].Loss, .05, "step %d", i)
	}
	require.Contains(t, got[len(got)-1].BLAS, ", bf16")
	require.NotEqual(t, a[len(a)-1].Loss, b[len(b)-1].Loss)

	for _, args := range []string{"--device cpu --bf16", "--device cuda --bf16 --tf32", "--device cuda --time-products="} {
		cmd := onGPUs(t, fewSteps(t, strings.Fields(args+" --workers 1")...))
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, 2, cmd.ProcessState.ExitCode(), "%s", out)
		require.Equal(t, 1, bytes.Count(out, []byte("\n")), "one line: %s", out)
	}
}

// The timed choices are kept for each worker. A run that finds them computes in the
// same way, from the start and from a checkpoint.
func TestGPUTimedProducts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	timed := func(workers string, args ...string) []string {
		return fewSteps(t, append([]string{"--device", "cuda", "--workers", workers, "--share-gpu", "--time-products", dir}, args...)...)
	}
	run := func(args ...string) (weights string) {
		got, stderr := trainOnGPUs(t, timed("2", args...)...)
		last := got[len(got)-1]
		require.Contains(t, last.BLAS, ", timed")
		require.NotContains(t, stderr, "warning")
		return last.Weights
	}
	file := filepath.Join(dir, "products-0.json")
	kept := func() string {
		other, err := os.ReadFile(filepath.Join(dir, "products-1.json"))
		require.NoError(t, err)
		require.Contains(t, string(other), "AffineGrad as one")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	weights, choices := run(), kept()
	require.Equal(t, weights, run())
	require.Equal(t, choices, kept(), "nothing was timed again")

	out := t.TempDir()
	run("--out", out, "--steps", "2")
	require.Equal(t, weights, run("--resume", out))

	for name, c := range map[string]struct{ from, to, says string }{
		"the next run uses them":  {`none beta 0": \d+,`, `none beta 0": 99,`, "candidate 99 was chosen"},
		"measured on another GPU": {`"gpu": "`, `"gpu": "another `, "remove it to time products again"},
	} {
		broken := regexp.MustCompile(c.from).ReplaceAllString(choices, c.to)
		require.NotEqual(t, choices, broken)
		require.NoError(t, os.WriteFile(file, []byte(broken), 0o600))
		cmd := onGPUs(t, timed("1"))
		text, err := cmd.CombinedOutput()
		require.Error(t, err, name)
		require.Contains(t, string(text), c.says, name)
	}
}

// Convolutions are timed too, with cuDNN and with our kernels. Choices are valid for
// one version of cuDNN.
func TestGPUTimedConvolutions(t *testing.T) {
	if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
		t.Skip("only the emulator can pass for another cuDNN")
	}
	require.NotEmpty(t, smallDir())
	dir := t.TempDir()
	args := []string{
		"train", "../../examples/convnet.cfg", "--data", "mnist:" + smallDir(), "--json", "--batch", "4", "--steps", "2", "--evaluation.frequency", "0",
		"--workers", "1", "--device", "cuda", "--time-products", dir,
	}
	run := func() ending {
		got, stderr := trainOnGPUs(t, args...)
		require.NotContains(t, stderr, "convolutions")
		last := got[len(got)-1]
		require.Contains(t, last.BLAS, ", cuDNN 9.1.0, timed")
		text, err := os.ReadFile(filepath.Join(dir, "products-0.json"))
		require.NoError(t, err)
		require.Contains(t, string(text), `"dnn": "cuDNN 9.1.0"`)
		require.Regexp(t, `"conv2d weights 4x1x14x14 by 3x3x3 stride 1 padding 0 f32": (-1|1),?`, string(text))
		return ending{last.Weights, string(text)}
	}
	require.Equal(t, run(), run(), "nothing was timed again")
	for setting, says := range map[string]string{
		"RINGTRAIN_EMULATOR_CUDNN=9.2.0":               " and cuDNN 9.2.0: remove it to time products again",
		"RINGTRAIN_CUDNN_LIB=/nonexistent/libcudnn.so": " without cuDNN: remove it to time products again",
	} {
		out, err := onGPUs(t, args, setting).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), says)
		require.Equal(t, 1, bytes.Count(out, []byte("\n")), "one line: %s", out)
	}
}

// An ending is what a run ends with, and keeps.
type ending struct{ weights, choices string }
