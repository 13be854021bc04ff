package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

func last(all []event) event { return all[len(all)-1] }

// flip changes one bit in the middle of a file.
func flip(t *testing.T, path string) {
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	raw[len(raw)/2] ^= 4
	require.NoError(t, os.WriteFile(path, raw, 0o666))
}

func steps(t *testing.T, dir string) []int {
	found, err := checkpoint.Steps(dir)
	require.NoError(t, err)
	return found
}

// One worker that computes the micro-batches of N workers gets their bits.
func TestAccumulateEqualsWorkers(t *testing.T) {
	for _, n := range []string{"2", "3", "4"} {
		args := []string{"--batch", "16", "--steps", "50"}
		for _, reduce := range []string{"mean", "sum"} {
			args := append(args, "--reduce", reduce)
			one := last(train(t, small(t, append(args, "--workers", "1", "--accumulate", n, "--transport", "inproc")...)...))
			many := last(train(t, small(t, append(args, "--workers", n, "--transport", "inproc")...)...))
			require.Equal(t, many.Weights, one.Weights, "%s workers, %s", n, reduce)
			require.Equal(t, many.Accuracy, one.Accuracy)
			require.Equal(t, 1, one.Workers)
		}
		tcp := last(train(t, small(t, append(args, "--workers", n, "--transport", "tcp")...)...))
		one := last(train(t, small(t, append(args, "--workers", "1", "--accumulate", n)...)...))
		require.Equal(t, tcp.Weights, one.Weights, "%s workers", n)
	}
}

// A corrupt newest checkpoint is reported and the previous one is used, in the middle
// of an epoch. The bits are those of an uninterrupted run.
func TestResumeFromTheOneBefore(t *testing.T) {
	whole := last(train(t, small(t, "--workers", "2", "--batch", "16", "--steps", "60", "--transport", "inproc")...))
	dir := filepath.Join(t.TempDir(), "run")
	all := train(t, small(t, "--workers", "2", "--batch", "16", "--steps", "45", "--out", dir, "--checkpoint-every", "10", "--keep", "3")...)
	require.Equal(t, []int{30, 40, 45}, steps(t, dir))
	require.Len(t, only(all, "checkpoint"), 5)
	require.Equal(t, 45, only(all, "checkpoint")[4].Step)
	flip(t, filepath.Join(dir, checkpoint.FileName(45)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, checkpoint.FileName(99)), []byte("from an abandoned training"), 0o666))

	code, stdout, stderr := result(small(t, "--workers", "2", "--batch", "16", "--steps", "60", "--resume", dir, "--transport", "inproc")...)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, checkpoint.FileName(45)+": ")
	require.Contains(t, stderr, "resuming from the one before")
	require.NotContains(t, stderr, "will differ")
	resumed := events(t, []byte(stdout))
	require.Equal(t, whole.Weights, last(resumed).Weights)
	require.Equal(t, whole.Accuracy, last(resumed).Accuracy)
	require.Equal(t, 40, only(resumed, "resumed")[0].Step)
	require.Equal(t, 41, only(resumed, "step")[0].Step)
	require.Equal(t, []int{40, 45, 60}, steps(t, dir), "--out is the directory of --resume")

	other := t.TempDir()
	code, stdout, stderr = result(small(t, "--workers", "3", "--batch", "32", "--seed", "7", "--steps", "65", "--resume", dir, "--out", other, "--transport", "inproc")...)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "the number of workers (3, was 2), --batch (32, was 16), --seed (7, was 0); the result will differ from that of an uninterrupted run")
	require.Equal(t, 65, last(events(t, []byte(stdout))).Steps)
	require.Equal(t, []int{65}, steps(t, other))
}

// A run that is already at its last step is evaluated, and no file is written.
func TestResumeAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	done := last(train(t, small(t, "--steps", "20", "--out", dir, "--transport", "inproc")...))
	long := time.Unix(1e9, 0)
	weights := filepath.Join(dir, "model.safetensors")
	require.NoError(t, os.Chtimes(weights, long, long))
	args := small(t, "--steps", "20", "--resume", dir, "--transport", "inproc")
	code, stdout, stderr := result(args...)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "nothing left to do: all 20 steps are done ("+filepath.Join(dir, checkpoint.FileName(20))+"); to train longer, raise --steps, for example --steps 40\n")
	again := events(t, []byte(stdout))
	require.Equal(t, done.Weights, last(again).Weights)
	require.Equal(t, done.Accuracy, last(again).Accuracy)
	for _, kind := range []string{"step", "checkpoint", "weights"} {
		require.Empty(t, only(again, kind))
	}
	info, err := os.Stat(weights)
	require.NoError(t, err)
	require.True(t, long.Equal(info.ModTime()), "the file is not written again")

	code, stdout, stderr = result(slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--json" })...)
	require.Zero(t, code, stderr)
	require.Regexp(t, `^\naccuracy 0\.\d+ after 20 steps\nweights sha256 [0-9a-f]{64}\nmatrix products: `, stdout, "and there is no table without steps")
	require.NotContains(t, stderr, "saved")

	require.NoError(t, os.Remove(weights)) // as if killed between the checkpoint and the weights
	require.Len(t, only(train(t, args...), "weights"), 1)
	require.FileExists(t, weights)
}

// Of two machines only one has the checkpoint, either of them. Compression residuals
// are restored on both.
func TestResumeWhereOneMachineHasTheFile(t *testing.T) {
	have := t.TempDir()
	train(t, small(t, "--workers", "2", "--batch", "16", "--steps", "20", "--compress", "int8", "--out", have, "--transport", "inproc")...)
	whole := last(train(t, small(t, "--workers", "2", "--batch", "16", "--steps", "40", "--compress", "int8", "--transport", "inproc")...))
	key, _ := keyFile(t)
	for i := range 2 {
		addr, lacks := freeAddr(t), filepath.Join(t.TempDir(), "none")
		copied := t.TempDir()
		raw, err := os.ReadFile(filepath.Join(have, checkpoint.FileName(20)))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(copied, checkpoint.FileName(20)), raw, 0o666))
		job := small(t, "--workers", "1", "--batch", "16", "--steps", "40", "--compress", "int8", "--nodes", "2", "--cluster", t.Name()+strconv.Itoa(i), "--key-file", key)
		first := command(t, append(job, "--bind", addr, "--resume", copied)...)
		said := new(strings.Builder)
		first.Stderr = said
		require.NoError(t, first.Start())
		second := train(t, append(job, "--join", addr, "--resume", lacks)...)
		require.NoError(t, first.Wait(), said)
		require.Equal(t, whole.Weights, last(second).Weights)
		require.Equal(t, 21, only(second, "step")[0].Step)
		require.FileExists(t, filepath.Join(lacks, "model.safetensors"))
	}
}

// A checkpoint that cannot be resumed is refused in one line, before anything starts.
func TestResumeRefuses(t *testing.T) {
	dir := t.TempDir()
	train(t, small(t, "--steps", "20", "--out", dir, "--transport", "inproc")...)
	broken := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(broken, checkpoint.FileName(5)), []byte("x"), 0o666))
	absent := filepath.Join(dir, "absent")
	for want, args := range map[string][]string{
		"there is no such directory":             {"--resume", absent},
		" contains no checkpoint":                {"--resume", t.TempDir()},
		"no intact checkpoint; the newest: ":     {"--resume", broken},
		"its layers.0.W has shape [32 196]":      {"--resume", dir, "--model.hidden_width", "16"},
		"slots average, m, v, the optimizer":     {"--resume", dir, "--optimizer.@optimizers", "SGD.v1"},
		"is at step 20, beyond the 10":           {"--resume", dir, "--steps", "10"},
		"be combined with --faithful-accumulate": {"--resume", dir, "--faithful-accumulate"},
		"checkpoints of an earlier run":          {"--out", dir},
		"--resume is empty":                      {"--resume", ""},
		"--checkpoint-every must be at least 1":  {"--out", dir, "--checkpoint-every", "0"},
		"--keep must be at least 1":              {"--out", dir, "--keep", "-1"},
		"need --out":                             {"--checkpoint-every", "5"},
		"--batch must be at least 1":             {"--batch", "0"},
		"--accumulate must be at least 1":        {"--accumulate", "0"},
		"--reduce must be mean, sum or total":    {"--reduce", "max"},
		"--strategy must be one of allreduce, ":  {"--strategy", "ps"},
		"needs more rows than the data":          {"--batch", "500", "--accumulate", "4"},
	} {
		code, stdout, stderr := result(small(t, args...)...)
		require.Equal(t, 2, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, want, "%v", args)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.Empty(t, stdout)
	}
	require.NoDirExists(t, absent)

	softmax := filepath.Join(t.TempDir(), "softmax.cfg")
	require.NoError(t, os.WriteFile(softmax, []byte("[model]\n@layers = \"Softmax.v1\"\n[optimizer]\n@optimizers = \"Adam.v1\"\n"), 0o666))
	code, _, stderr := result("train", softmax, "--data", "mnist:"+smallDir(), "--resume", dir)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "its layers.0.W has shape [32 196], the model's [10 196]")
}

// Older checkpoints name gonum's products. They are resumed with a warning that bits differ.
func TestResumeWithOlderProducts(t *testing.T) {
	dir := t.TempDir()
	train(t, small(t, "--steps", "3", "--out", dir, "--transport", "inproc")...)
	old, path, _, err := checkpoint.Latest(dir)
	require.NoError(t, err)
	require.Equal(t, "ringtrain fma256", old.Notes["blas"])
	old.Notes["blas"] = "gonum amd64 assembly"
	_, err = old.Write(dir)
	require.NoError(t, err)
	code, _, stderr := result(small(t, "--steps", "5", "--resume", dir, "--transport", "inproc")...)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "changed since "+path+": the library for matrix products (")
	require.Contains(t, stderr, ", was gonum amd64 assembly); the result will differ")
}
