package job

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// Errors about the config name the line or the flag.
func TestMistakesHaveAPosition(t *testing.T) {
	for _, c := range []struct {
		sections, path, raw, want string
	}{
		{"[ray]\nobject_store_memory = 10\n", "", "", ":2: "},
		{"[training]\ncompress = \"zip\"\n", "", "", ":2: training.compress"},
		{"[training]\nbatch_size = \"four\"\n", "", "", ":2: "},
		{"[training]\nbatch_size = 0\n", "", "", ":2: "},
		{"[training]\n\nsteps = 3\n", "", "", ":3: "},
		{"", "training.batch_size", "-1", "--training.batch_size: "},
		{"", "model.dropout", "1.5", "--model.dropout: "},
		{"", "optimizer.@optimizers", "Adan.v1", "--optimizer.@optimizers: "},
		{"", "optimizer.learn_rate", "fast", "--optimizer.learn_rate"},
	} {
		f := smallSpec(t, c.sections)
		if c.path != "" {
			f.Overrides = []config.Override{{Path: c.path, Raw: c.raw}}
		}
		want := c.want
		if c.path == "" {
			want = f.Config + want
		}
		_, err := f.Settle()
		require.ErrorContains(t, err, want)
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage)
	}
	var at *config.Error
	_, err := smallSpec(t, "[ray]\nobject_store_memory = 10\n").Settle()
	require.ErrorAs(t, err, &at)
	require.Equal(t, 2, at.Pos.Line)
}

// Describe does not check sizes against the machine and the data. Settle does.
func TestDescribeIsSettleWithoutTheMachine(t *testing.T) {
	f := tinySpec(t)
	for want, change := range map[string]func(*Spec){
		"needs more rows than the data has (50)":        func(f *Spec) { f.Batch = 26 },
		"--workers must be at most 1024 on one machine": func(f *Spec) { f.Workers = 5000 },
		"--bf16 needs GPUs":                             func(f *Spec) { f.Products.BF16 = true },
	} {
		f := f
		change(&f)
		_, err := f.Describe()
		require.NoError(t, err, want)
		_, err = f.Settle()
		require.ErrorContains(t, err, want)
	}
	f.Batch = 25
	s, err := f.Settle()
	require.NoError(t, err, "two workers take all 50 rows")
	require.Equal(t, 2, s.AllWorkers())
	require.LessOrEqual(t, s.Cores, runtime.NumCPU())
	f.Overrides = []config.Override{{Path: "ray.num_cpus", Raw: "100000"}}
	s, err = f.Settle()
	require.NoError(t, err)
	require.Equal(t, runtime.NumCPU(), s.Cores, "there are no more")
	require.Equal(t, 10, s.evalBatch, "nor are there more rows to test with")
}

// Settle does not change the Spec, so it can be used again.
func TestSettleLeavesTheSpec(t *testing.T) {
	f := tinySpec(t)
	f.Saving.Resume = t.TempDir()
	before := f
	s, err := f.Settle()
	require.NoError(t, err)
	require.Equal(t, before.Saving, f.Saving)
	require.Equal(t, before.Workers, f.Workers)
	require.Equal(t, f.Saving.Resume, s.Spec.Saving.Dir)
	require.Empty(t, f.Saving.Dir)
}

// An OpenBLAS that the user names must exist. Needs its own process, which loads it once.
func TestNamedOpenBLAS(t *testing.T) {
	if !inChild(t) {
		return
	}
	require.NoError(t, os.Setenv(cpu.EnvOpenBLAS, filepath.Join(t.TempDir(), "libopenblas.so")))
	_, missing := cpu.OpenBLAS()
	if missing == nil || errors.Is(missing, cpu.ErrNoOpenBLAS) {
		return // this build uses no OpenBLAS
	}
	_, err := tinySpec(t).Settle()
	var usage *crew.UsageError
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "libopenblas.so")
}

// The checks of flags that other commands have too.
func TestSharedChecks(t *testing.T) {
	require.NoError(t, CheckBucket(1))
	require.EqualError(t, CheckBucket(0), "--bucket must be at least 1 byte, not 0")
	require.NoError(t, CheckCompress("topk:0.01"))
	require.ErrorContains(t, CheckCompress("topk"), "--compress: ")
	f := NewSpec(nil, "")
	f.Gradients.Bucket = 0
	require.NoError(t, f.Check(), "0 lets the links decide")
}

// Resuming with other data is a warning, wherever the files are.
func TestResumeOnOtherData(t *testing.T) {
	f := tinySpec(t)
	f.Steps, f.Saving.Dir = 3, t.TempDir()
	run(t, f)
	other := tinySpec(t)
	dir := other.Data[len("mnist:"):]
	other.Saving = Saving{Resume: f.Saving.Dir}
	require.Empty(t, run(t, other).said(), "the same rows in another directory")
	flipLabel(t, dir)
	other.Steps = 8
	said := run(t, other).said()
	require.Contains(t, said, "changed since "+stepFile(f.Saving.Dir, 6)+": the data, the best evaluation, which is dropped because it was of other data; the result will differ")
}

// batchNorm is a network with running statistics for images of 8 by 8.
const batchNorm = `
[model]
@layers = "chain.v1"
[model.*.images]
@layers = "Images.v1"
[model.*.norm]
@layers = "BatchNorm2D.v1"
[model.*.out]
@layers = "Softmax.v1"
[optimizer]
@optimizers = "Adam.v1"
`

// Settings that would change running statistics are refused before anything starts.
func TestStatisticsNeedMeans(t *testing.T) {
	spec := func(sections string) Spec {
		f := tinySpec(t)
		require.NoError(t, os.WriteFile(f.Config, []byte(sections+batchNorm), 0o600))
		f.Batch, f.Steps = 4, 2
		return f
	}
	const why = " cannot be combined with this network: its layers.1.running_mean is a running statistic, the mean over all rows of a step; "
	for want, change := range map[string]func(*Spec){
		"--compress int8" + why + "leave out --compress":     func(f *Spec) { f.Gradients.Compress = "int8" },
		"--reduce total" + why + "use --reduce mean":         func(f *Spec) { f.Gradients.Reduce = "total" },
		"--reduce sum" + why + "use --reduce mean":           func(f *Spec) { f.Gradients.Reduce = "sum" },
		"--faithful-accumulate" + why + "leave it out":       func(f *Spec) { f.Gradients.Faithful = true },
		":2: training.compress: it" + why + "set it to none": func(f *Spec) { *f = spec("[training]\ncompress = \"bf16\"\n") },
		"--training.compress: it" + why + "set":              func(f *Spec) { f.Overrides = []config.Override{{Path: "training.compress", Raw: "topk:0.1"}} },
	} {
		f := spec("[training]\n")
		_, err := f.Settle()
		require.NoError(t, err)
		change(&f)
		f.Saving.Dir = filepath.Join(t.TempDir(), "run")
		h, err := runError(t, t.Context(), f, Options{})
		require.ErrorContains(t, err, want)
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage)
		require.Empty(t, h.all)
		require.NoDirExists(t, f.Saving.Dir)
	}
	f := spec("[training]\ncompress = \"bf16\"\n")
	f.Gradients.Compress = "none"
	_, err := f.Settle()
	require.NoError(t, err, "the flag wins")
}
