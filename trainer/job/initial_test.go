package job

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// trained trains 3 steps, and returns the output directory and the weights.
func trained(t *testing.T) (dir string, weights []checkpoint.Named) {
	f := tinySpec(t)
	f.Steps, f.Saving.Dir = 3, t.TempDir()
	run(t, f)
	file, err := checkpoint.Load(filepath.Join(f.Saving.Dir, weightsFile))
	require.NoError(t, err)
	return f.Saving.Dir, file.Tensors
}

// A run starts from given weights, on all ranks and with every kind of file, and its steps
// count from 0. The seed of random weights no longer matters.
func TestInitialWeights(t *testing.T) {
	dir, weights := trained(t)
	bare := filepath.Join(t.TempDir(), "bare.safetensors") // as other programs write
	require.NoError(t, checkpoint.Save(bare, checkpoint.File{Tensors: weights}))
	f := tinySpec(t)
	f.Steps = 2
	fresh := resultOf(t, run(t, f)).WeightsSHA256
	begun := map[string]bool{}
	for _, path := range []string{dir, filepath.Join(dir, weightsFile), stepFile(dir, 3), bare} {
		for _, servers := range []string{"allreduce", psSync} {
			f.Saving.Init, f.Strategy = path, servers
			h := run(t, f)
			require.Empty(t, h.said())
			require.Equal(t, 1, eventsOf[*event.Step](h)[0].Step)
			begun[resultOf(t, h).WeightsSHA256] = true
		}
	}
	require.Len(t, begun, 1)
	require.NotContains(t, begun, fresh)

	f.Strategy, f.Saving = allReduce, Saving{Dir: t.TempDir(), Init: dir}
	run(t, f)
	at2 := stepFile(f.Saving.Dir, 2)
	f.Steps, f.Saving = 4, Saving{Resume: f.Saving.Dir, Init: filepath.Join(dir, "removed")}
	h := run(t, f)
	require.Equal(t, []*event.Resumed{{Path: at2, Step: 2}}, eventsOf[*event.Resumed](h), "a resumed run has its own weights")
}

// A file that describes other classes may fit by chance, and is worth a warning.
func TestInitialWeightsOfAnotherModel(t *testing.T) {
	_, weights := trained(t)
	path := filepath.Join(t.TempDir(), "other.safetensors")
	require.NoError(t, checkpoint.Save(path, checkpoint.File{Tensors: weights, Metadata: map[string]string{"classes": "11", "about": "x"}}))
	f := tinySpec(t)
	f.Saving.Init = path
	require.Equal(t, "ringtrain: warning: --init "+path+": it describes other classes (11) than this data (10), so its weights may not suit it\n", run(t, f).said())
}

// Weights that cannot be used are refused before anything starts.
func TestInitialWeightsRefused(t *testing.T) {
	_, weights := trained(t)
	save := func(change func(f *checkpoint.File)) string {
		f := checkpoint.File{}
		for _, w := range weights {
			f.Tensors = append(f.Tensors, checkpoint.Named{Name: w.Name, Tensor: w.Tensor.Clone().(*tensor.Dense)})
		}
		change(&f)
		path := filepath.Join(t.TempDir(), "w.safetensors")
		require.NoError(t, checkpoint.Save(path, f))
		return path
	}
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("not weights at all"), 0o600))
	empty := t.TempDir()
	for want, path := range map[string]string{
		"it does not fit the model: it has no " + weights[0].Name: save(func(f *checkpoint.File) { f.Tensors = f.Tensors[1:] }),
		`it does not fit the model, which has no "extra"`: save(func(f *checkpoint.File) {
			f.Tensors = append(f.Tensors, checkpoint.Named{Name: "extra", Tensor: tensor.New(tensor.WithBacking([]float32{1}))})
		}),
		"not finite":             save(func(f *checkpoint.File) { f.Tensors[0].Tensor.Data().([]float32)[0] = float32(math.NaN()) }),
		"has shape":              save(func(f *checkpoint.File) { f.Tensors[0].Tensor = f.Tensors[1].Tensor }),
		"not a safetensors file": text,
		"no such file":           filepath.Join(empty, "none"),
		"or the --out of a run":  empty,
	} {
		f := tinySpec(t)
		f.Saving.Init = path
		h, err := runError(t, t.Context(), f, Options{})
		require.ErrorContains(t, err, "--init: ")
		require.ErrorContains(t, err, want)
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage)
		require.Empty(t, h.all)
	}
}
