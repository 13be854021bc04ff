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

// Products in bfloat16 train, too, near the CPU, and say so.
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

// What was timed is kept for each worker, and a run that finds it computes in the
// same way: again from the start, and from a checkpoint.
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
	require.Equal(t, choices, kept(), "nothing was timed anew")

	out := t.TempDir()
	run("--out", out, "--steps", "2")
	require.Equal(t, weights, run("--resume", out))

	for name, c := range map[string]struct{ from, to, says string }{
		"they are what the next run takes": {`none beta 0": \d+,`, `none beta 0": 99,`, "candidate 99 was chosen"},
		"of another GPU":                   {`"gpu": "`, `"gpu": "another `, "remove it to have products timed anew"},
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
