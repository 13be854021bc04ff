package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// --best measures, predicts and continues texts with the weights of the best evaluation.
// A rate that is too high makes the last ones worse.
func TestBest(t *testing.T) {
	dir, path := t.TempDir(), cups(t, 100)
	args := trainCSV("classify.cfg", path, "kind", "--out", dir, "--evaluation.frequency", "2", "--optimizer.learn_rate", "0.5", "--steps", "31")
	code, stdout, stderr := result(args...)
	require.Zero(t, code, stderr)
	best, steps := metric(t, stdout, "best_value"), metric(t, stdout, "best_step")
	require.Greater(t, best, metric(t, stdout, "accuracy"))
	lines := strings.Split(stdout, "\n")
	require.Contains(t, lines[len(lines)-2], `"best_metric":"accuracy"`)

	code, table, stderr := result(slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return slices.Contains([]string{"--json", "--out", dir}, arg) })...)
	require.Zero(t, code, stderr)
	require.Regexp(t, fmt.Sprintf(`(?m)^ +%v .*  \*$`, steps), table)
	require.Contains(t, table, fmt.Sprintf("\nbest (*): accuracy %.4f after step %v\n", best, steps))

	code, last, stderr := result("eval", dir, "--json")
	require.Zero(t, code, stderr)
	code, chosen, stderr := result("eval", dir, "--json", "--best")
	require.Zero(t, code, stderr)
	require.InDelta(t, metric(t, stdout, "accuracy"), metric(t, last, "accuracy"), 0)
	require.InDelta(t, best, metric(t, chosen, "accuracy"), 0)
	_, of, _ := result("predict", dir, path)
	code, ofBest, stderr := result("predict", dir, path, "--best")
	require.Zero(t, code, stderr)
	require.NotEqual(t, of, ofBest)
	code, _, stderr = result("predict", t.TempDir(), path, "--best")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "there are no weights of a best evaluation")
	code, _, stderr = result("sample", dir, "--prompt", "a", "--best")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "model-best.safetensors cannot generate text; use ringtrain predict")
}
