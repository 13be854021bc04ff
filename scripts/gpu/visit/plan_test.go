package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every step gets the time that it needs, even if all steps before it use their limits.
func TestAllowed(t *testing.T) {
	for _, steps := range [][]step{first(), second()} {
		for _, seconds := range []int{525, 300, 20, 1} {
			all := 0
			for _, s := range steps {
				all += s.need
				require.LessOrEqual(t, s.need, s.limit, s.name)
			}
			require.LessOrEqual(t, all, 525, "the expected times fit into the limit")
			left := time.Duration(seconds) * time.Second
			for i, s := range steps {
				own := allowed(steps[i:], left, false)
				require.LessOrEqual(t, own, time.Duration(s.limit)*time.Second)
				share := min(1, float64(seconds)/float64(all))
				require.GreaterOrEqual(t, own.Seconds(), .999*share*float64(s.need), "%s of %d s", s.name, seconds)
				left -= own
				require.GreaterOrEqual(t, left, time.Duration(0))
			}
		}
	}
	require.Zero(t, allowed(first(), -time.Second, false))
	trials := 0
	for _, s := range first() {
		trials += s.trial
	}
	require.LessOrEqual(t, allowed(first(), 300*time.Second, true), 40*time.Second)
	require.Positive(t, trials)
}

// The help of gpu-check.sh and the page list the steps with their seconds.
func TestHelpListsSteps(t *testing.T) {
	help, err := os.ReadFile("../../gpu-check.sh")
	require.NoError(t, err)
	docs, err := os.ReadFile("../../../docs/gpu.md")
	require.NoError(t, err)
	for _, s := range append(first(), second()...) {
		require.Regexp(t, fmt.Sprintf(`(?m)^#   %s +%d +%d +\S`, s.name, s.need, s.limit), string(help))
		require.Regexp(t, fmt.Sprintf(`(?m)^\| %s \| .* \| %d \| %d \|`, s.name, s.need, s.limit), string(docs))
	}
}

// All tests that steps name exist.
func TestNamedTestsExist(t *testing.T) {
	var sources strings.Builder
	for _, dir := range directories {
		files, err := filepath.Glob("../../../" + dir + "/*_test.go")
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			sources.Write(text)
		}
	}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	named := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1) {
			if regexp.MustCompile(`^TestBF16$`).MatchString(name) {
				continue // a prefix of several names
			}
			named++
			require.Contains(t, sources.String(), "func "+name+"(t *testing.T)", file)
		}
	}
	require.Greater(t, named, 20)
}

// kernels finds every kernel, and those that share memory.
func TestKernels(t *testing.T) {
	all, shared := kernels("../../..")
	entries := 0
	files, err := filepath.Glob("../../../cuda/kernels/*.cu")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		entries += strings.Count(string(text), "\nextern \"C\" __global__")
	}
	require.Len(t, all, entries)
	require.Subset(t, shared, []string{"sum_rows", "softmax_cross_entropy", "squared_norm", "adam_arena"})
	require.NotContains(t, shared, "axpy")
	t.Logf("%d of %d kernels share memory: %s", len(shared), len(all), strings.Join(shared, " "))
}

func TestChoose(t *testing.T) {
	steps, err := choose(settings{steps: "nccl,sanitizer"})
	require.NoError(t, err)
	require.Len(t, steps, 2)
	_, err = choose(settings{steps: "nothing"})
	require.ErrorContains(t, err, `there is no step "nothing"; the steps are facts, cuda,`)
	steps, err = choose(settings{rest: true})
	require.NoError(t, err)
	require.Equal(t, "failed", steps[0].name)
}
