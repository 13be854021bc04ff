package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Workers that send rows of embedding tables end with the bits of workers that send whole
// tables and of one worker with as many micro-batches, with dropout, over every transport.
// They send fewer bytes.
func TestSparse(t *testing.T) {
	_, args := entityArgs(t, 200, "--steps", "8", "--task.batcher.size.start", "30", "--model.tok2vec.embed.rows", "[2100, 1100, 100, 100]", "--transport", "inproc")
	want := last(train(t, append(args, "--accumulate", "3")...))
	require.Equal(t, "auto", want.Sparse)
	require.Zero(t, want.SparseSteps, "one worker sends nothing")
	args = append(args, "--workers", "3")
	whole := last(train(t, append(args, "--sparse", "off")...))
	require.Equal(t, want.Weights, whole.Weights)
	require.Zero(t, whole.SparseSteps)
	require.NotContains(t, whole.Plan, "embedding tables")
	for _, transport := range []string{"inproc", "tcp", "shm"} {
		for sparse, plan := range map[string]string{
			"auto": "; embedding tables (2) as rows in steps in which that is fewer bytes",
			"on":   "; embedding tables (4) as rows",
		} {
			all := train(t, append(args, "--transport", transport, "--sparse", sparse)...)
			got := last(all)
			require.Equal(t, want.Weights, got.Weights, "%s over %s", sparse, transport)
			require.Equal(t, sparse, got.Sparse)
			require.Equal(t, 8, got.SparseSteps)
			require.True(t, strings.HasSuffix(got.Plan, plan), got.Plan)
			require.Less(t, got.WireBytes, whole.WireBytes)
			require.Greater(t, got.Ratio, 1.2)
			require.Equal(t, map[string]int{"auto": 2, "on": 4}[sparse], only(all, "step")[0].AsRows)
		}
	}
}

// The setting can be in the config, and the flag overrides it.
func TestSparseOfConfig(t *testing.T) {
	_, args := entityArgs(t, 50, "--steps", "2", "--workers", "2", "--training.sparse", "on")
	require.Equal(t, "on", last(train(t, args...)).Sparse)
	require.Equal(t, "off", last(train(t, append(args, "--sparse", "off")...)).Sparse)
}

func TestSparseRefuses(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.cfg")
	require.NoError(t, os.WriteFile(bad, []byte("[training]\nsparse = \"rows\"\n[model]\n@layers = \"Softmax.v1\"\n[optimizer]\n@optimizers = \"Adam.v1\"\n"), 0o666))
	for want, args := range map[string][]string{
		`--sparse must be auto, on or off, not "rows"`:                                  {"train", config(t), "--sparse", "rows"},
		`--sparse must be auto, on or off, not "yes"`:                                   {"bench", "scaling", "--sparse", "yes"},
		`bad.cfg:2: training.sparse must be auto, on or off, not "rows"`:                {"train", bad},
		"--sparse on cannot be combined with compressed gradients (bf16): they are":     {"train", config(t), "--sparse", "on", "--compress", "bf16"},
		"--sparse on cannot be combined with --strategy ps-sync, which sends gradients": {"train", config(t), "--sparse", "on", "--strategy", "ps-sync"},
		"training.sparse: on cannot be combined with --strategy diloco":                 {"train", config(t), "--training.sparse", "on", "--strategy", "diloco"},
		"--device cuda: gradients on GPUs are sent whole: use --sparse auto":            {"train", config(t), "--sparse", "on", "--device", "cuda"},
		"--sparse on cannot be combined with --compute emulate":                         {"bench", "scaling", "--sparse", "on", "--compute", "emulate:1ms"},
	} {
		code, stdout, stderr := result(args...)
		require.Equal(t, 2, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.Empty(t, stdout)
	}
}
