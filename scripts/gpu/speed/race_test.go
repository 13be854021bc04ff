package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// All ways take turns, rounds begin with different ways, and one that fails is left out.
func TestRace(t *testing.T) {
	var order strings.Builder
	step := func(name string, fails int, times ...float64) way {
		calls := 0
		return way{name: name, run: func(_ context.Context, steps int) (float64, error) {
			order.WriteString(name)
			calls++
			if calls == fails {
				return 0, os.ErrClosed
			}
			if calls == 1 {
				require.Equal(t, 5, steps, "to warm up")
				return 1e9, nil
			}
			require.Equal(t, 16, steps)
			return times[calls-2], nil
		}}
	}
	us, errs := clock{warmup: 5, steps: 16, rounds: 3}.race(t.Context(), []way{step("a", 0, 9, 1, 2), step("b", 3, 7), step("c", 0, 4, 6, 5)})
	require.Equal(t, []float64{2, 7, 5}, us)
	require.Equal(t, []error{nil, os.ErrClosed, nil}, errs)
	require.Equal(t, "abc"+"bca"+"cab"+"ac", order.String())
}

func TestTimed(t *testing.T) {
	calls, syncs := 0, 0
	run := timed(func() error { calls++; return nil }, 8, func() error { syncs++; return nil })
	us, err := run(t.Context(), 16)
	require.NoError(t, err)
	require.Positive(t, us)
	require.Equal(t, 2, calls)
	require.Equal(t, 1, syncs)
	_, err = timed(func() error { return os.ErrClosed }, 1, func() error { return nil })(t.Context(), 1)
	require.ErrorIs(t, err, os.ErrClosed)
	_, err = timed(func() error { return nil }, 1, func() error { return os.ErrClosed })(t.Context(), 1)
	require.ErrorIs(t, err, os.ErrClosed)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = run(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
}

// answering returns a script that replaces baselines.py.
func answering(t *testing.T, cases string) []string {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "torch")
	require.NoError(t, os.WriteFile(path, []byte("echo '{\"torch\": \"9.9\"}'\nwhile read -r line; do case $line in\n"+cases+"\n*) echo '{\"error\": \"what?\"}' ;;\nesac; done\n"), 0o600))
	return []string{bash, path}
}

func TestTorch(t *testing.T) {
	p, err := openTorch(t.Context(), answering(t, `
*'"list":"MLP"'*) echo "a compiler's line"; echo '{"ways": ["fast", "broken"]}' ;;
*'"prepare":"fast","model":"MLP","numbers":"fp32"'*) echo '{}' ;;
*'"prepare":"broken"'*) echo '{"error": "no compiler"}' ;;
*'"run":"fast","steps":7'*) echo '{"us": 12.5}' ;;`))
	require.NoError(t, err)
	require.Equal(t, "9.9", p.version)
	ways := p.ways(t.Context(), "MLP", "fp32")
	require.Len(t, ways, 2)
	us, err := ways[0].run(t.Context(), 7)
	require.NoError(t, err)
	require.Equal(t, 12.5, us)
	_, err = ways[1].run(t.Context(), 7)
	require.EqualError(t, err, "no compiler")
	_, err = ways[0].run(t.Context(), 8)
	require.EqualError(t, err, "what?")
	require.NoError(t, p.close())
	require.Empty(t, (*torch)(nil).ways(t.Context(), "MLP", "fp32"), "without PyTorch")
}

// If PyTorch takes too long to compile, it is restarted and no longer compiles. The other ways
// of the network are still measured.
func TestTorchHangs(t *testing.T) {
	p, err := openTorch(t.Context(), answering(t, `
*list*) echo '{"ways": ["fast", "torch.compile"]}' ;;
*'"prepare":"fast"'*) echo '{}' ;;
*prepare*) read -r never ;;
*'"run":"fast"'*) echo '{"us": 12.5}' ;;`))
	require.NoError(t, err)
	p.limits.prepare = time.Second
	for _, model := range []string{"MLP", "ConvNet"} {
		ways := p.ways(t.Context(), model, "fp32")
		require.Len(t, ways, 2)
		us, err := ways[0].run(t.Context(), 1)
		require.NoError(t, err, model)
		require.Equal(t, 12.5, us)
		_, err = ways[1].run(t.Context(), 1)
		require.EqualError(t, err, "no time left to compile it")
	}
	require.NoError(t, p.close())
	_, err = openTorch(t.Context(), []string{"false"})
	require.ErrorContains(t, err, "PyTorch's process ended")
}

// If too little time is left to compile, compiling does not begin, because stopping it would
// need a restart of PyTorch.
func TestTorchHasNoTime(t *testing.T) {
	p, err := openTorch(t.Context(), answering(t, `
*list*) echo '{"ways": ["torch.compile"]}' ;;`))
	require.NoError(t, err)
	short, end := context.WithTimeout(t.Context(), afterCompiling+leastToCompile-time.Second)
	defer end()
	ways := p.ways(short, "MLP", "fp32")
	require.Len(t, ways, 1)
	_, err = ways[0].run(t.Context(), 1)
	require.EqualError(t, err, "no time left to compile it")
	require.False(t, p.again)
	require.NoError(t, p.close())
}

// A captured step lives as long as its graph, which writes to its memory.
func TestCapturedStepStays(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-B", "-c", `
import gc, sys, weakref
from unittest.mock import MagicMock
sys.modules["torch"] = MagicMock()
sys.path.insert(0, "..")
import baselines
step = baselines.Step(baselines.mlp, MagicMock(), {})
alive = weakref.ref(step)
run = baselines.captured(step)
del step
gc.collect()
assert alive() is not None, "the step was freed, but its graph was not"
run()
`)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
