package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Over every transport, a compressed training ends with the same bits and reports what
// it sent.
func TestCompress(t *testing.T) {
	for how, least := range map[string]float64{"none": 1, "bf16": 2, "fp16": 2, "int8": 2.5, "topk:0.01": 30} {
		args := []string{"--workers", "3", "--steps", "20", "--batch", "32", "--compress", how}
		all := train(t, small(t, append(args, "--transport", "inproc")...)...)
		want := last(all)
		require.Equal(t, how, want.Compress)
		require.GreaterOrEqual(t, want.Ratio, least)
		require.Positive(t, want.WireBytes)
		require.Equal(t, want.WireBytes, 20*only(all, "step")[0].WireBytes)
		for _, transport := range []string{"tcp", "shm"} {
			if how == "fp16" && transport == "tcp" {
				continue // slow, and tests nothing new
			}
			got := last(train(t, small(t, append(args, "--transport", transport)...)...))
			require.Equal(t, want.Weights, got.Weights, "%s over %s", how, transport)
		}
	}
}

// Compression can be set in the config, and the flag overrides it.
func TestCompressOfConfig(t *testing.T) {
	args := small(t, "--workers", "2", "--steps", "3", "--batch", "16", "--transport", "inproc", "--training.compress", "int8")
	require.Equal(t, "gathered as int8 by 2 ranks, summed by each in ring order", last(train(t, args...)).Plan)
	require.Contains(t, last(train(t, append(args, "--compress", "bf16")...)).Plan, ", as bfloat16")
	require.Equal(t, "none", last(train(t, append(args, "--compress", "none")...)).Compress)
	code, stdout, stderr := result(append(args, "--json=false")...)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "compressed as int8: each worker sent ")
	require.Contains(t, stdout, "SENT(MB)")
}

// A checkpoint contains the residual of each worker.
func TestCompressResumes(t *testing.T) {
	for _, how := range []string{"int8", "topk:0.01"} {
		args := []string{"--workers", "2", "--batch", "16", "--compress", how}
		whole := last(train(t, small(t, append(args, "--steps", "30", "--transport", "inproc")...)...))
		dir := filepath.Join(t.TempDir(), "run")
		train(t, small(t, append(args, "--steps", "20", "--out", dir)...)...)
		code, stdout, stderr := result(small(t, append(args, "--steps", "30", "--resume", dir, "--out", t.TempDir(), "--transport", "inproc")...)...)
		require.Zero(t, code, stderr)
		require.NotContains(t, stderr, "will differ")
		require.Equal(t, whole.Weights, last(events(t, []byte(stdout))).Weights)

		for want, change := range map[string][]string{
			"the number of workers (3, was 2), compression residuals of 2 workers, which are dropped; the result will differ": {"--workers", "3"},
			"--compress (none, was " + how + "), compression residuals of 2 workers":                                          {"--compress", "none"},
			"was allreduce), compression residuals of 2 workers":                                                              {"--strategy", "local-sgd", "--inner-steps", "2"},
			"--reduce (sum, was mean), compression residuals of 2 workers":                                                    {"--reduce", "sum"},
			"--compress (bf16, was " + how + "); the result will differ":                                                      {"--compress", "bf16"},
		} {
			code, _, stderr := result(small(t, append(append(args, "--steps", "22", "--resume", dir, "--out", t.TempDir(), "--transport", "inproc"), change...)...)...)
			require.Zero(t, code, stderr)
			require.Contains(t, stderr, want)
		}
		code, stdout, stderr = result("eval", dir, "--data", "mnist:"+smallDir())
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, "on 300 rows")
	}
}

func TestCompressRefuses(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.cfg")
	require.NoError(t, os.WriteFile(bad, []byte("[training]\ncompress = \"zip\"\n[model]\n@layers = \"Softmax.v1\"\n[optimizer]\n@optimizers = \"Adam.v1\"\n"), 0o666))
	for want, args := range map[string][]string{
		"--compress: topk:0: the share":                           {"train", config(t), "--compress", "topk:0"},
		"--compress: topk:2: the share":                           {"train", config(t), "--compress", "topk:2"},
		`--compress: unknown compression "foo"`:                   {"train", config(t), "--compress", "foo"},
		`--compress: unknown compression ""`:                      {"train", config(t), "--compress", ""},
		`bad.cfg:2: training.compress: unknown compression "zip"`: {"train", bad},
		"cannot be combined with --accumulate on one":             {"train", config(t), "--compress", "int8", "--workers", "1", "--accumulate", "2"},
		`--compress: unknown compression "foo": use none`:         {"estimate", config(t), "--compress", "foo"},
	} {
		code, stdout, stderr := result(args...)
		require.Equal(t, 2, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.Empty(t, stdout)
	}
}

func TestEstimateCompress(t *testing.T) {
	for how, ratio := range map[string]float64{"none": 1, "bf16": 2, "fp16": 2, "int8": 3.93, "topk:0.01": 50} {
		code, stdout, stderr := result("estimate", config(t), "--workers", "2", "--compress", how, "--json")
		require.Zero(t, code, stderr)
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(stdout), &e))
		require.InEpsilon(t, ratio, e["compression_ratio"], .01, how)
		require.Equal(t, how == "none", e["compression_bytes"].(float64) == 0)
	}
}
