package job

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// saved returns a checkpoint of s, with the residuals of this many ranks.
func saved(t *testing.T, s *Training, step, residuals int) checkpoint.Training {
	declared, err := s.Problem.Declare()
	require.NoError(t, err)
	params := declared.Declared()
	zeros := func() (all []checkpoint.Named) {
		for _, p := range params {
			all = append(all, checkpoint.Named{Name: p.Name, Tensor: tensor.New(tensor.WithShape(p.Shape...), tensor.Of(tensor.Float32))})
		}
		return all
	}
	out := checkpoint.Training{Step: step, Weights: zeros(), Slots: map[string][]checkpoint.Named{}, Notes: sameNotes(s)}
	for _, slot := range s.optimizer.Slots() {
		out.Slots[slot] = zeros()
	}
	for range residuals {
		out.Residuals = append(out.Residuals, zeros())
	}
	return out
}

// sameNotes returns the notes of a checkpoint of s itself.
func sameNotes(s *Training) map[string]string {
	return map[string]string{
		"config": s.Config.Text(), "data_sha256": "D", "seed": "0", "workers": "2", "batch": "16", "accumulate": "1", "reduce": "mean", "compress": "none", "blas": "B",
	}
}

// inMemory is a dataset of images in memory, instead of another.
type inMemory struct {
	catalog.Dataset
	set *data.Set
}

// Size implements catalog.ImageDataset.
func (d inMemory) Size() catalog.ImageSize {
	return catalog.ImageSize{Channels: 1, Height: d.set.Train.Height, Width: d.set.Train.Width}
}

// Open implements catalog.ImageDataset.
func (d inMemory) Open(context.Context) (*data.Set, error) { return d.set, nil }

// rowsOf are the rows of a run on images in memory.
func rowsOf(t *testing.T, s *Training, set *data.Set) catalog.Rows {
	p, err := s.Spec.Catalog.Problem(s.Config, inMemory{s.Dataset, set})
	require.NoError(t, err)
	rows, err := p.Open(t.Context())
	require.NoError(t, err)
	return rows
}

func describe(t *testing.T, f Spec) *Training {
	s, err := f.Describe()
	require.NoError(t, err)
	return s
}

// latest returns the newest intact checkpoint and reports newer corrupt ones. If the newest
// is of another model, the error says what does not fit.
func TestLatest(t *testing.T) {
	s := describe(t, smallSpec(t, "[training]\nbatch_size = 16\n[ray]\nnum_workers = 2\n"))
	declared, err := s.Problem.Declare()
	require.NoError(t, err)
	params := declared.Declared()
	wide := smallSpec(t, "")
	text, err := os.ReadFile(wide.Config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(wide.Config, bytes.Replace(text, []byte("hidden_width = 8"), []byte("hidden_width = 9"), 1), 0o600))
	other := describe(t, wide)
	write := func(dir string, of *Training, step int) string {
		path, err := saved(t, of, step, 0).Write(dir)
		require.NoError(t, err)
		return path
	}
	corrupt := func(path string, change func([]byte) []byte) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, change(text), 0o600))
	}
	for _, c := range []struct {
		name   string
		make   func(dir string)
		step   int // 0: none
		broken int
		want   string
	}{
		{"newest", func(d string) { write(d, s, 5); write(d, s, 100); write(d, s, 20) }, 100, 0, ""},
		{"truncated", func(d string) {
			write(d, s, 5)
			corrupt(write(d, s, 6), func(b []byte) []byte { return b[:len(b)-1] })
			corrupt(write(d, s, 7), func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
			corrupt(write(d, s, 8), func([]byte) []byte { return nil })
		}, 5, 3, ""},
		{"under the name of another step", func(d string) {
			write(d, s, 5)
			require.NoError(t, os.Rename(write(d, s, 6), filepath.Join(d, checkpoint.FileName(9))))
		}, 5, 1, ""},
		{"all broken", func(d string) { corrupt(write(d, s, 6), func(b []byte) []byte { return b[:9] }) }, 0, 1, "contains no intact checkpoint; the newest: "},
		{"other model", func(d string) { write(d, other, 6) }, 0, 1, "it does not fit the model: its "},
		{"an older one of this model", func(d string) { write(d, s, 5); write(d, other, 6) }, 5, 1, ""},
		{"empty", func(string) {}, 0, 0, "contains no checkpoint (a file such as step-00000050.safetensors)"},
		{"missing", func(d string) { require.NoError(t, os.Remove(d)) }, 0, 0, "no such file or directory"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		require.NoError(t, os.Mkdir(dir, 0o700))
		c.make(dir)
		got, path, broken, err := latest(dir, s.fitsHeader(params))
		require.Len(t, broken, c.broken, c.name)
		if c.want != "" {
			require.ErrorContains(t, err, "--resume "+dir, c.name)
			require.ErrorContains(t, err, c.want, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, c.step, got.Step, c.name)
		require.Equal(t, filepath.Join(dir, checkpoint.FileName(c.step)), path, c.name)
	}
}

// changed names everything that makes a resumed run end with other weights, and
// nothing else.
func TestChanged(t *testing.T) {
	f := smallSpec(t, "[training]\nbatch_size = 16\niterations = 30\n[ray]\nnum_workers = 2\n")
	s := describe(t, f)
	require.Empty(t, s.changed(sameNotes(s), "D", "B"))
	old := sameNotes(s)
	delete(old, "compress")
	require.Empty(t, s.changed(old, "D", "B"), "older checkpoints lack the note")
	longer := f
	longer.Steps = 99
	require.Empty(t, describe(t, longer).changed(sameNotes(s), "D", "B"), "more steps do not change earlier ones")
	for note, want := range map[string]string{
		"seed": "--seed (0, was x)", "workers": "the number of workers (2, was x)", "batch": "--batch (16, was x)", "accumulate": "--accumulate (1, was x)",
		"reduce": "--reduce (mean, was x)", "compress": "--compress (none, was x)", "blas": "the library for matrix products (B, was x)", "data_sha256": "the data", "order": "--order (ring, was x)",
	} {
		notes := maps.Clone(sameNotes(s))
		notes[note] = "x"
		require.Equal(t, []string{want}, s.changed(notes, "D", "B"), note)
	}
	notes := sameNotes(s)
	notes["config"] = strings.Replace(notes["config"], "hidden_width = 8", "hidden_width = 9", 1)
	require.Equal(t, []string{"[model]"}, s.changed(notes, "D", "B"))
	notes["config"] = "no config"
	require.Equal(t, []string{"[model]", "[task]", "[optimizer]"}, s.changed(notes, "D", "B"))
}

// Before anything starts, the user learns what will differ and what cannot work.
func TestCheckResume(t *testing.T) {
	f := smallSpec(t, "[training]\nbatch_size = 16\n[ray]\nnum_workers = 2\n")
	f.Data, f.Saving.Resume = DefaultData, t.TempDir()
	set := &data.Set{Train: &data.Images{Rows: 1, Height: 28, Width: 28, Classes: 10, Pixels: make([]byte, 784), Labels: []byte{1}}}
	set.Test = set.Train
	check := func(f Spec) (string, error) {
		s := describe(t, f)
		var said strings.Builder
		err := s.checkResume(rowsOf(t, s, set), &said)
		return said.String(), err
	}
	_, err := saved(t, describe(t, f), 40, 3).Write(f.Saving.Resume)
	require.NoError(t, err)
	said, err := check(f)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(said, "\n"))
	require.Contains(t, said, filepath.Join(f.Saving.Resume, checkpoint.FileName(40)))
	require.Contains(t, said, "the data")
	require.Contains(t, said, "of 3 workers, which are dropped")

	f.Steps = 39
	_, err = check(f)
	require.ErrorContains(t, err, "is at step 40, beyond the 39 of this run: raise --steps")

	f.Steps, f.Place.Nodes, f.Saving.Resume = 50, 2, filepath.Join(t.TempDir(), "elsewhere")
	said, err = check(f)
	require.NoError(t, err, "another machine may have it")
	require.Empty(t, said)
	f.Place.Nodes = 1
	_, err = check(f)
	require.ErrorIs(t, err, os.ErrNotExist)

	f.Saving.Resume = t.TempDir()
	require.NoError(t, os.WriteFile(stepFile(f.Saving.Resume, 40), nil, 0o600))
	_, err = check(f)
	require.ErrorContains(t, err, "contains no intact checkpoint; the newest: ")
	f.Place.Nodes = 2
	said, err = check(f)
	require.NoError(t, err, "another machine may have an intact one")
	require.Contains(t, said, "ringtrain: warning: --resume "+f.Saving.Resume+" contains no intact checkpoint; the newest: ")
	require.Equal(t, 1, strings.Count(said, "\n"))
	f.Overrides = []config.Override{{Path: "model.hidden_width", Raw: "9"}}
	_, err = saved(t, describe(t, f), 41, 0).Write(f.Saving.Resume)
	require.NoError(t, err)
	f.Overrides = nil
	_, err = check(f)
	require.ErrorContains(t, err, "it does not fit the model: ")
}

// Newest looks in all directories and skips corrupt checkpoints.
func TestNewest(t *testing.T) {
	s := describe(t, smallSpec(t, ""))
	a, b := t.TempDir(), t.TempDir()
	for dir, steps := range map[string][]int{a: {3, 9}, b: {4}} {
		for _, step := range steps {
			_, err := saved(t, s, step, 0).Write(dir)
			require.NoError(t, err)
		}
	}
	step, in := Newest(b, "", a, "/nowhere")
	require.Equal(t, 9, step)
	require.Equal(t, a, in)
	require.NoError(t, os.Truncate(filepath.Join(a, checkpoint.FileName(9)), 100))
	step, in = Newest(a, b)
	require.Equal(t, 4, step)
	require.Equal(t, b, in)
	step, in = Newest("", t.TempDir())
	require.Equal(t, -1, step)
	require.Empty(t, in)
}

// Arenas become tensors with the names of parameters, and arenas again.
func TestSlotArenas(t *testing.T) {
	s := describe(t, smallSpec(t, ""))
	model, err := s.Problem.Probe(cpu.New(cpu.Options{}))
	require.NoError(t, err)
	p := model.Params
	arena := make([]float32, p.Values.Len())
	for i := range arena {
		arena[i] = float32(i)
	}
	named := arenaTensors(p, arena)
	got, err := tensorArena(p, named)
	require.NoError(t, err)
	for _, q := range p.List {
		require.Equal(t, arena[q.Offset:q.Offset+q.Values.Len()], got[q.Offset:q.Offset+q.Values.Len()], q.Name)
	}
	named[0].Tensor = tensor.New(tensor.WithShape(p.List[0].Shape...), tensor.Of(tensor.Float64))
	_, err = tensorArena(p, named)
	require.EqualError(t, err, p.List[0].Name+" is not float32")
}
