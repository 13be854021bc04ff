package job

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// newLoader returns a Loader on the CPU.
func newLoader(t *testing.T) *Loader {
	backend := cpu.New(cpu.Options{})
	t.Cleanup(func() { require.NoError(t, backend.Close()) })
	return &Loader{Catalog: catalog.New(), Backend: backend}
}

// sumOf returns the SHA-256 of loaded weights.
func sumOf(t *testing.T, trained *Loaded) string {
	sum, err := checkpoint.Hash(trained.Weights)
	require.NoError(t, err)
	return sum
}

// Load reads the weights of a job from its directory, its weights file and its checkpoint,
// and the test rows.
func TestLoad(t *testing.T) {
	f := tinySpec(t)
	f.Saving = Saving{Dir: t.TempDir(), Every: 3}
	want := resultOf(t, run(t, f)).WeightsSHA256
	l := newLoader(t)
	for _, path := range []string{f.Saving.Dir, filepath.Join(f.Saving.Dir, weightsFile), stepFile(f.Saving.Dir, 6)} {
		for _, labelled := range []bool{false, true} {
			got, err := l.Load(t.Context(), path, f.Data, labelled)
			require.NoError(t, err, path)
			require.Equal(t, want, sumOf(t, got))
			predictor, err := got.Predictor()
			require.NoError(t, err)
			rows := 0
			for _, err := range predictor.All(t.Context()) {
				require.NoError(t, err)
				rows++
			}
			require.Equal(t, 10, rows)
			inModel, err := weights(l.Backend, predictor.Params())
			require.NoError(t, err)
			sum, err := checkpoint.Hash(inModel)
			require.NoError(t, err)
			require.Equal(t, want, sum)
		}
	}
	early, err := l.Load(t.Context(), stepFile(f.Saving.Dir, 3), f.Data, true)
	require.NoError(t, err)
	require.NotEqual(t, want, sumOf(t, early))
}

// In a directory, Load prefers the weights file unless an intact checkpoint is newer.
func TestLoadPrefersTheNewest(t *testing.T) {
	f := tinySpec(t)
	f.Saving = Saving{Dir: t.TempDir(), Every: 3}
	run(t, f)
	dir, l := f.Saving.Dir, newLoader(t)
	load := func() (string, error) {
		got, err := l.Load(t.Context(), dir, f.Data, false)
		if err != nil {
			return "", err
		}
		return sumOf(t, got), nil
	}
	f.Steps, f.Saving = 8, Saving{Dir: t.TempDir(), Resume: dir, Every: 1}
	run(t, f)
	for _, step := range []int{7, 8} {
		text, err := os.ReadFile(stepFile(f.Saving.Dir, step))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(stepFile(dir, step), text, 0o600))
	}
	at := func(step int) string {
		got, err := checkpoint.Read(stepFile(dir, step))
		require.NoError(t, err)
		sum, err := checkpoint.Hash(got.Weights)
		require.NoError(t, err)
		return sum
	}
	got, err := load()
	require.NoError(t, err)
	require.Equal(t, at(8), got)
	require.NoError(t, os.Truncate(stepFile(dir, 8), 300))
	got, err = load()
	require.NoError(t, err)
	require.Equal(t, at(7), got, "a corrupt one does not count")
	require.NoError(t, os.Remove(stepFile(dir, 7)))
	got, err = load()
	require.NoError(t, err)
	require.Equal(t, hashOf(t, filepath.Join(dir, weightsFile)), got)
	require.NoError(t, os.Remove(filepath.Join(dir, weightsFile)))
	got, err = load()
	require.NoError(t, err)
	require.Equal(t, at(6), got, "a job that was killed before it wrote weights")
	for _, step := range []int{3, 6} {
		require.NoError(t, os.Truncate(stepFile(dir, step), 300))
	}
	_, err = load()
	require.ErrorContains(t, err, stepFile(dir, 8), "the newest, though all are corrupt")
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Mkdir(dir, 0o700))
	_, err = load()
	require.EqualError(t, err, "the directory "+dir+" has neither a checkpoint nor "+filepath.Join(dir, weightsFile)+"; give the --out of a run, or a file in it")
	require.NoError(t, os.WriteFile(filepath.Join(dir, weightsFile), []byte("x"), 0o600))
	_, err = load()
	require.ErrorContains(t, err, "checkpoint "+filepath.Join(dir, weightsFile))
}

// rewrite changes a file of weights.
func rewrite(t *testing.T, path string, change func(*checkpoint.File)) {
	f, err := checkpoint.Load(path)
	require.NoError(t, err)
	change(&f)
	require.NoError(t, checkpoint.Save(path, f))
}

// Load returns an error for weights that are invalid or do not fit the data.
func TestLoadRefuses(t *testing.T) {
	f := tinySpec(t)
	f.Saving.Dir = t.TempDir()
	run(t, f)
	path, l := filepath.Join(f.Saving.Dir, weightsFile), newLoader(t)
	original, err := os.ReadFile(path)
	require.NoError(t, err)
	large, test := data.Generate(data.DigitsOptions{Train: 1, Test: 4, Side: 9})
	other := t.TempDir()
	require.NoError(t, data.WriteMNIST(other, large, test))
	note := func(key, value string) func(*checkpoint.File) {
		return func(f *checkpoint.File) { f.Metadata[key] = value }
	}
	for _, c := range []struct {
		source, want string
		change       func(*checkpoint.File)
	}{
		{"mnist:" + other, path + " is for images of 8x8, but those of mnist:" + other + " have 9x9; use --data", nil},
		{"imagenet", `--data: unknown data "imagenet"`, nil},
		{"idx:nosuch", "--data: nosuch: no such file or directory; name a file of rows", nil},
		{f.Data, "it does not describe its model; it was not written by ringtrain train", note("format", "pt")},
		{f.Data, "its notes do not describe the images and classes it was trained on", note("classes", "none")},
		{f.Data, "its notes do not describe the images and classes it was trained on", note("height", "100000000")},
		{f.Data, "its notes do not describe the images and classes it was trained on", note("channels", "0")},
		{f.Data, "the config in it: ", note("config", "[model")},
		{f.Data, "the config in it: ", note("config", "[model]\n@layers = \"cnn.v9\"\n")},
		{f.Data, "its layers.0.W has shape [8 64], the model's [8 72]", note("width", "9")},
		{f.Data, "it does not fit the model: it has no layers.2.b", func(f *checkpoint.File) { f.Tensors = f.Tensors[:len(f.Tensors)-1] }},
		{f.Data, "layers.0.W", func(f *checkpoint.File) {
			f.Tensors[0].Tensor = tensor.New(tensor.WithShape(8, 64), tensor.WithBacking(append(make([]float32, 511), float32(math.NaN()))))
		}},
	} {
		require.NoError(t, os.WriteFile(path, original, 0o600))
		if c.change != nil {
			rewrite(t, path, c.change)
		}
		_, err := l.Load(t.Context(), path, c.source, !strings.HasPrefix(c.source, "idx:"))
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "\n")
	}
}

// A model of fewer classes than the labels have cannot be measured with them, but it can
// predict.
func TestLoadFewerClasses(t *testing.T) {
	f := tinySpec(t)
	f.Saving.Dir = t.TempDir()
	run(t, f)
	set, err := data.OpenMNIST(strings.TrimPrefix(f.Data, "mnist:"))
	require.NoError(t, err)
	set.Test.Labels[3] = 11
	more := t.TempDir()
	require.NoError(t, data.WriteMNIST(more, set.Train, set.Test))
	l := newLoader(t)
	_, err = l.Load(t.Context(), f.Saving.Dir, "mnist:"+more, true)
	require.ErrorContains(t, err, "has classes 0 to 9, but row 3 of mnist:"+more+" has the label 11; use --data")
	got, err := l.Load(t.Context(), f.Saving.Dir, "mnist:"+more, false)
	require.NoError(t, err)
	_, err = got.Predictor()
	require.NoError(t, err)
}
