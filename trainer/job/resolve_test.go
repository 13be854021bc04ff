package job

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// smallModel is a network with 784*8+8 + 8*8+8 + 8*10+10 = 6442 parameters.
const smallModel = `
[model]
@layers = "relu_relu_softmax.v1"
hidden_width = 8
dropout = 0.0

[optimizer]
@optimizers = "Adam.v1"
`

const smallParameters = 6442

// smallSpec returns a Spec whose config has these sections and smallModel.
func smallSpec(t *testing.T, sections string) Spec {
	path := filepath.Join(t.TempDir(), "small.cfg")
	require.NoError(t, os.WriteFile(path, []byte(sections+smallModel), 0o600))
	f := NewSpec(catalog.New(), path)
	f.Device.Device = "cpu"
	return f
}

// Flags win over the config, and the config wins over the defaults.
func TestPrecedence(t *testing.T) {
	const file = "[training]\niterations = 30\nbatch_size = 5\ncompress = \"bf16\"\n[evaluation]\nfrequency = 4\nbatch_size = 9\n[ray]\nnum_workers = 3\nnum_cpus = 1\n"
	type numbers struct{ workers, steps, batch, evalEvery, evalBatch int }
	for _, c := range []struct {
		name, sections string
		change         func(*Spec)
		want           numbers
		compress       trainer.Form
	}{
		{"defaults", "", func(*Spec) {}, numbers{1, 200, 128, 10, 256}, trainer.Exact},
		{"config", file, func(*Spec) {}, numbers{3, 30, 5, 4, 9}, trainer.BFloat16},
		{"flags", file, func(f *Spec) { f.Workers, f.Steps, f.Batch, f.Gradients.Compress = 2, 7, 6, "none" }, numbers{2, 7, 6, 4, 9}, trainer.Exact},
		{"one flag", file, func(f *Spec) { f.Steps = 7 }, numbers{3, 7, 5, 4, 9}, trainer.BFloat16},
		{"override", file, func(f *Spec) {
			f.Overrides = []config.Override{{Path: "training.iterations", Raw: "8"}, {Path: "training.compress", Raw: "none"}}
		}, numbers{3, 8, 5, 4, 9}, trainer.Exact},
		{"a flag beats an override", file, func(f *Spec) {
			f.Overrides, f.Steps = []config.Override{{Path: "training.iterations", Raw: "8"}}, 9
		}, numbers{3, 9, 5, 4, 9}, trainer.BFloat16},
	} {
		f := smallSpec(t, c.sections)
		c.change(&f)
		s, err := f.Settle()
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, numbers{s.Workers, s.Steps, s.Batch, s.evalEvery, s.evalBatch}, c.name)
		require.Equal(t, c.compress, s.Compression.Form, c.name)
		require.False(t, s.Placement.OnGPU())
	}
	f := smallSpec(t, file)
	f.Accumulate, f.Gradients.Reduce, f.Place.Nodes = 4, "sum", 2
	s, err := f.Describe()
	require.NoError(t, err)
	require.Equal(t, 4, s.micro)
	require.Equal(t, trainer.ReduceSum, s.reduce)
	require.Equal(t, 6, s.AllWorkers(), "3 on each of 2 machines")
	require.Equal(t, 1, s.Cores)
}

// Settle finds mistakes that depend on flags, config and data together.
func TestSettleRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		sections string
		change   func(*Spec)
		want     string
	}{
		"more rows than there are":  {"", func(f *Spec) { f.Workers, f.Accumulate, f.Batch = 2, 10, 1001 }, "a step of 2 workers x --accumulate 10 x --batch 1001 needs more rows than the data has (20000): lower one of them"},
		"a product beyond an int":   {"", func(f *Spec) { f.Batch = 1 << 62 }, "needs more rows than the data has"},
		"more workers than a host":  {"", func(f *Spec) { f.Workers = crew.MaxLocal + 1 }, "--workers must be at most 1024 on one machine, not 1025"},
		"more workers than a job":   {"", func(f *Spec) { f.Workers, f.Place.Nodes = 1000, 9 }, "9 machines with --workers 1000 are more than 8192 ranks"},
		"compressed alone":          {"", func(f *Spec) { f.Accumulate, f.Gradients.Compress = 2, "bf16" }, "--compress bf16 cannot be combined with --accumulate on one worker"},
		"more memory than allowed":  {"[ray]\nobject_store_memory = 1000\n", func(*Spec) {}, "raise it or use fewer workers"},
		"a form of no compression":  {"[training]\ncompress = \"zip\"\n", func(*Spec) {}, "training.compress"},
		"a key that nothing reads":  {"[training]\niteration = 3\n", func(*Spec) {}, "iteration"},
		"a directory for a config":  {"", func(f *Spec) { f.Config = dir }, dir + " is a directory: name a file"},
		"no config":                 {"", func(f *Spec) { f.Config = filepath.Join(dir, "none.cfg") }, "none.cfg"},
		"unknown data":              {"", func(f *Spec) { f.Data = "imagenet" }, "imagenet"},
		"graphs without a GPU":      {"", func(f *Spec) { f.Graphs.How = "whole" }, "--graphs whole: the workers compute on the CPU"},
		"bf16 without a GPU":        {"", func(f *Spec) { f.Products.BF16 = true }, "--bf16 needs GPUs"},
		"NCCL without a GPU":        {"", func(f *Spec) { f.Device.NCCL, f.Workers = "must", 2 }, "--nccl must: "},
		"a model beyond memory":     {"", func(f *Spec) { f.Overrides = []config.Override{{Path: "model.hidden_width", Raw: "1000000000"}} }, "its parameters and their gradients take"},
		"GPUs in one process":       {"", func(f *Spec) { f.Device.Device, f.Place.Transport = "cuda", "inproc" }, "--device cuda: --transport inproc runs all workers in one process"},
		"GPUs compress nothing yet": {"", func(f *Spec) { f.Device.Device, f.Gradients.Compress = "cuda", "bf16" }, "--device cuda: gradients are compressed in host memory"},
	} {
		f := smallSpec(t, c.sections)
		c.change(&f)
		_, err := f.Settle()
		require.ErrorContains(t, err, c.want, name)
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage, name)
		require.NotContains(t, err.Error(), "\n", name)
	}
}

// The limit ray.object_store_memory is exact to the byte.
func TestObjectStoreMemory(t *testing.T) {
	const need = 2 * (24000*(784+1) + 4*784*(128+256)) // two workers: rows with labels, and batches
	settle := func(limit int) error {
		_, err := smallSpec(t, fmt.Sprintf("[ray]\nnum_workers = 2\nobject_store_memory = %d\n", limit)).Settle()
		return err
	}
	require.NoError(t, settle(need))
	require.ErrorContains(t, settle(need-1), fmt.Sprintf("2 workers keep %d bytes of data and batches in memory, more than ray.object_store_memory = %d", need, need-1))
}

// Estimates, summed by hand.
func TestEstimateByHand(t *testing.T) {
	estimate := func(change func(*Spec)) *Estimate {
		f := smallSpec(t, "[training]\nbatch_size = 16\n[ray]\nnum_workers = 2\n")
		change(&f)
		s, err := f.Describe()
		require.NoError(t, err)
		e, err := s.Estimate()
		require.NoError(t, err)
		require.Equal(t, e.Workers*(e.Values+e.Gradients+e.Slots+e.Compression+e.Activations+e.Data), e.Total)
		return e
	}
	const arena = 4 * (784*8 + 16 + 8*8 + 16 + 8*10 + 10) // parameters begin at multiples of 16 elements
	const file = 4 * smallParameters
	e := estimate(func(*Spec) {})
	require.Equal(t, smallParameters, e.Parameters)
	require.Equal(t, arena, e.Values)
	require.Equal(t, arena, e.Gradients)
	require.Equal(t, 3*arena, e.Slots, "two moments and the average")
	require.Zero(t, e.Compression)
	require.Equal(t, 24000*(784+1)+4*784*(16+256), e.Data)
	require.Equal(t, 5*file, e.Checkpoint, "the weights, the slots and the best weights")
	require.Equal(t, arena, e.Wire, "of two ranks each sends one vector")
	require.InDelta(t, 1, e.Ratio, 1e-12)
	require.Equal(t, 2*e.Activations, estimate(func(f *Spec) { f.Batch = 32 }).Activations, "they grow with the rows")

	sums := estimate(func(f *Spec) { f.Accumulate = 3 })
	require.Equal(t, 3*arena, sums.Gradients)
	require.Equal(t, 24000*(784+1)+4*784*(3*16+256), sums.Data)

	half := estimate(func(f *Spec) { f.Gradients.Compress = "bf16" })
	require.Equal(t, arena/2, half.Wire)
	require.InDelta(t, 2, half.Ratio, 1e-12)
	require.Equal(t, 2*arena+arena/2, half.Compression, "what was lost before, in this step, and the packed gradients")
	require.Equal(t, 5*file+2*file, half.Checkpoint, "with the residuals of two ranks")
	require.Contains(t, half.Plan, "; 2 times as many bytes without compression")

	alone := estimate(func(f *Spec) { f.Workers = 1 })
	require.Zero(t, alone.Wire)
	require.Equal(t, "alone", alone.Plan)
}
