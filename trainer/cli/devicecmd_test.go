package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
)

// Every mistake with GPUs is one line and exit code 2, before anything starts.
func TestDeviceMistakes(t *testing.T) {
	cases := map[string][]string{
		"--device must be auto, cpu, cuda or cuda:I":          {"train", config(t), "--device", "gpu"},
		"of a GPU, not \"cuda:-1\"":                           {"train", config(t), "--device", "cuda:-1"},
		"--nccl must be auto, must or off, not \"on\"":        {"train", config(t), "--nccl", "on"},
		"--steps-per-launch 2 needs graphs":                   {"train", config(t), "--graphs", "off", "--steps-per-launch", "2"},
		"ringtrain: --nccl must: NCCL sums only on GPUs":      {"train", config(t), "--device", "cpu", "--nccl", "must"},
		"and the workers compute on the CPU: use --device":    {"bench", "collective", "--nccl", "must"},
		"--share-gpu needs GPUs, and the workers compute on":  {"train", config(t), "--share-gpu", "--device", "cpu"},
		"ringtrain: --share-gpu needs GPUs":                   {"bench", "collective", "--share-gpu"},
		"--steps-per-launch 4 needs GPUs, and the workers":    {"train", config(t), "--steps-per-launch", "4", "--device", "cpu"},
		"--tf32 needs GPUs, and the workers compute on the":   {"train", config(t), "--tf32", "--device", "cpu"},
		"--device cuda: --transport inproc runs all":          {"train", config(t), "--device", "cuda", "--transport", "inproc"},
		"--device cuda: gradients are compressed":             {"train", config(t), "--device", "cuda", "--compress", "bf16"},
		"--device cuda: --hosts netns emulates":               {"bench", "collective", "--device", "cuda", "--hosts", "netns"},
		"--device cuda: --memory selects":                     {"bench", "collective", "--device", "cuda", "--memory", "shared"},
		"--device must be auto, cpu, cuda or cuda:I, where I": {"bench", "collective", "--device", "tpu"},
	}
	if cuda.Built() != nil {
		cases["--device cuda: no GPU can be used: this binary is built without -tags gpu: build it with"] = []string{"train", config(t), "--device", "cuda"}
		cases["--device cuda:3: no GPU can be used: this binary is built without"] = []string{"bench", "collective", "--device", "cuda:3"}
	}
	for want, args := range cases {
		code, stdout, stderr := result(args...)
		require.Equal(t, 2, code, "%v: %s", args, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
	}
}
