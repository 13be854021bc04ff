package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

// predictions is what predict --json writes.
type predictions []struct {
	Row, Class  int
	Probability float64
}

// Predict and eval agree, on weights from the end of a run and on a checkpoint
// from the middle.
func TestPredict(t *testing.T) {
	out := t.TempDir()
	want := last(train(t, small(t, "--steps", "40", "--out", out, "--checkpoint-every", "30", "--transport", "inproc", "--workers", "2")...))
	labels := smallLabels(t)
	right := func(path string) (share float64) {
		code, stdout, stderr := result("predict", path, "--data", "mnist:"+smallDir(), "--json")
		require.Zero(t, code, stderr)
		var rows predictions
		for line := range bytes.Lines([]byte(stdout)) {
			rows = append(rows, predictions{{}}...)
			require.NoError(t, json.Unmarshal(line, &rows[len(rows)-1]))
		}
		require.Len(t, rows, 300, "more than one batch")
		correct := 0
		for i, p := range rows {
			require.Equal(t, i, p.Row)
			require.GreaterOrEqual(t, p.Probability, .1)
			require.LessOrEqual(t, p.Probability, 1.)
			if p.Class == int(labels[i]) {
				correct++
			}
		}
		return float64(correct) / 300
	}
	require.InDelta(t, want.Accuracy, right(out), 1e-9)
	require.InDelta(t, want.Accuracy, right(filepath.Join(out, "model.safetensors")), 1e-9)
	require.InDelta(t, want.Accuracy, right(filepath.Join(out, checkpoint.FileName(40))), 1e-9)
	require.Less(t, right(filepath.Join(out, checkpoint.FileName(30))), want.Accuracy+.05)

	// A run that was killed leaves only checkpoints.
	require.NoError(t, os.Remove(filepath.Join(out, "model.safetensors")))
	code, stdout, _ := result("eval", out, "--data", "mnist:"+smallDir(), "--json")
	require.Zero(t, code)
	require.Equal(t, want.Weights, events(t, []byte(stdout))[0].Weights, "the hash leaves out the optimizer's tensors")
	flip(t, filepath.Join(out, checkpoint.FileName(40)))
	code, stdout, _ = result("eval", out, "--data", "mnist:"+smallDir(), "--json")
	require.Zero(t, code)
	require.NotEqual(t, want.Weights, events(t, []byte(stdout))[0].Weights, "the previous checkpoint")
	flip(t, filepath.Join(out, checkpoint.FileName(30)))
	for _, args := range [][]string{{"eval", out}, {"predict", out}, {"eval", filepath.Join(out, checkpoint.FileName(40))}} {
		code, _, stderr := result(append(args, "--data", "mnist:"+smallDir())...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, checkpoint.FileName(40))
		require.Equal(t, 1, strings.Count(stderr, "\n"))
	}
	code, _, stderr := result("predict")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "predict needs a CHECKPOINT")
}

// smallLabels returns the labels of the small test set.
func smallLabels(t *testing.T) []byte {
	set, err := openSmall()
	require.NoError(t, err)
	return set.Test.Labels
}

func TestConfigCommands(t *testing.T) {
	code, stdout, stderr := result("config", "check", config(t))
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "train accepts it")
	for want, args := range map[string][]string{
		`did you mean "batch_size"?`:                  {"config", "check", config(t), "--training.batchsize", "3"},
		"must be at least 0 and less than 1, not 1.5": {"config", "check", config(t), "--model.dropout", "1.5"},
		"config print needs a CONFIG file":            {"config", "print"},
		"no such file":                                {"config", "fill", "nosuch.cfg"},
		`no "foo.v1"`:                                 {"config", "fill", config(t), "--model.@layers", "foo.v1"},
		"no section [trainin]":                        {"config", "print", config(t), "--trainin.x", "1"},
		"estimate needs a CONFIG file":                {"estimate"},
		"--batch must be at least 1":                  {"estimate", config(t), "--batch", "0"},
		"keygen takes no --a.b":                       {"keygen", "x", "--a.b", "1"},
		`keygen takes no --a.\x1b[2J`:                 {"keygen", "x", "--a.\x1b[2J", "1"},
		`did you mean "ray.num_cpus"?`:                {"config", "explain", "ray.numcpus"},
		"explain takes one KEY, not 2":                {"config", "explain", "ray", "model"},
	} {
		code, stdout, stderr := result(args...)
		require.Equal(t, 2, code, "%v", args)
		require.Contains(t, stderr, want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.Empty(t, stdout)
	}

	for want, args := range map[string][]string{
		"[evaluation]  how often to measure":                       {"config", "explain"},
		"--batch wins over both":                                   {"config", "explain", "training.batch_size"},
		"frequency   whole number, at least 0  10":                 {"config", "explain", "evaluation"},
		"learn_rate          number, list or sched":                {"config", "explain", "Adam.v1"},
		"whole number  32        highest rate divided by the last": {"config", "explain", "slanted_triangular.v1"},
	} {
		code, stdout, stderr := result(args...)
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, want)
	}

	code, stdout, _ = result("config", "print", config(t), "--json", "--training.batch_size", "64", "--model.hidden_width", "${training.batch_size}")
	require.Zero(t, code)
	var tree map[string]map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &tree))
	require.Equal(t, 64., tree["training"]["batch_size"])
	require.Equal(t, map[string]any{"@layers": "relu_relu_softmax.v1", "hidden_width": 64., "dropout": .2}, tree["model"], "functions stay as they are written")

	// Fill and print write configs that train to the same weights.
	want := last(train(t, small(t, "--steps", "5", "--transport", "inproc")...)).Weights
	for _, how := range []string{"print", "fill"} {
		code, stdout, _ = result("config", how, config(t), "--model.hidden_width", "32")
		require.Zero(t, code)
		require.Equal(t, how == "fill", strings.Contains(stdout, "beta1 = 0.9"))
		path := filepath.Join(t.TempDir(), "x.cfg")
		require.NoError(t, os.WriteFile(path, []byte(stdout), 0o666))
		got := last(train(t, "train", path, "--data", "mnist:"+smallDir(), "--json", "--steps", "5", "--transport", "inproc"))
		require.Equal(t, want, got.Weights)
	}
}

func TestEstimate(t *testing.T) {
	code, stdout, stderr := result("estimate", config(t), "--workers", "4", "--json")
	require.Zero(t, code, stderr)
	var e map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &e))
	require.Equal(t, 784*128+128+128*128+128+128*10+10., e["parameters"])
	require.Equal(t, 3*e["values_bytes"].(float64), e["slots_bytes"], "Adam with averages")
	require.InDelta(t, 2*3./4*e["values_bytes"].(float64), e["wire_bytes"], 1)
	require.GreaterOrEqual(t, e["activations_bytes"], 4.*128*(128+128+10), "of the forward pass alone")
	code, _, stderr = result("estimate", config(t), "--workers", "8192")
	require.Zero(t, code, stderr)
	code, stdout, _ = result("estimate", config(t))
	require.Zero(t, code)
	require.Contains(t, stdout, "parameters")
	require.Contains(t, stdout, "118282")
}

// Completion offers commands and flags.
func TestCompletion(t *testing.T) {
	for want, args := range map[string][]string{
		"__complete":         {"completion", "bash"},
		"#compdef":           {"completion", "zsh"},
		"fish completion":    {"completion", "fish"},
		"--checkpoint-every": {"__complete", "train", "--check"},
		"predict":            {"__complete", "pre"},
		"inproc":             {"__complete", "train", "--transport", ""},
		"allreduce":          {"__complete", "train", "--strategy", ""},
		"mean":               {"__complete", "train", "--reduce", ""},
		"digits":             {"__complete", "eval", "run", "--data", ""},
		"cfg":                {"__complete", "train", ""},
	} {
		code, stdout, _ := result(args...)
		require.Zero(t, code, "%v", args)
		require.Contains(t, stdout, want, "%v", args)
	}
}
