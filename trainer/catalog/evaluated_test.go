package catalog_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// notesOf returns the notes of a run on a column of shapes.
func notesOf(t *testing.T, path string, o catalog.Options) map[string]string {
	c := catalog.New()
	cfg := parse(t, chain("Softmax.v1"))
	d, err := c.Data("csv:"+path, o)
	require.NoError(t, err)
	p, err := c.Problem(cfg, d)
	require.NoError(t, err)
	rows, err := p.Open(t.Context())
	require.NoError(t, err)
	return catalog.Notes(cfg, d, rows)
}

// Without --data, rows are those of the training's evaluations: test rows of their own, or
// those that were held out of the training file.
func TestEvaluated(t *testing.T) {
	c, path := catalog.New(), shapes(t)
	other := filepath.Join(t.TempDir(), "other.csv")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other, text[:len(text)/2], 0o600))

	d, held, err := c.Evaluated(t.Context(), nil, true)
	require.NoError(t, err)
	require.Equal(t, "digits", d.Info().Name)
	require.False(t, held)
	d, held, err = c.Evaluated(t.Context(), notesOf(t, path, catalog.Options{Target: "kind", Test: path}), true)
	require.NoError(t, err)
	require.False(t, held)
	require.Equal(t, 60, d.Info().Test)

	notes := notesOf(t, path, catalog.Options{Target: "kind", Holdout: .3})
	d, held, err = c.Evaluated(t.Context(), notes, true)
	require.NoError(t, err)
	require.True(t, held)
	require.Equal(t, 18, d.Info().Test)
	first, err := c.Data("csv:"+path, catalog.Options{Target: "kind", Holdout: .3})
	require.NoError(t, err)
	_, want := first.(catalog.TableDataset).Tables()
	_, got := d.(catalog.TableDataset).Tables()
	require.Equal(t, want.Rows, got.Rows)
	require.Equal(t, want.Table.Cells, got.Table.Cells)

	_, _, err = c.Evaluated(t.Context(), map[string]string{"data": "csv:" + path, catalog.OptionTest: "moved.csv"}, true)
	require.EqualError(t, err, "train evaluated on csv:moved.csv: cannot read the CSV file: open moved.csv: no such file or directory; name other rows with --data")

	const before = "the rows that train evaluated on were held out of csv:"
	for why, change := range map[string]func(notes map[string]string){
		"the fraction is noted as \"x\"":  func(notes map[string]string) { notes[catalog.OptionHoldout] = "x" },
		"it has changed since then; name": func(notes map[string]string) { notes[catalog.OptionHoldout] = "0.2" },
		"no such file or directory":       func(notes map[string]string) { notes["data"] = "csv:nosuch.csv" },
		"config:1":                        func(notes map[string]string) { notes["config"] = "damaged" },
	} {
		changed := maps.Clone(notes)
		change(changed)
		_, _, err := c.Evaluated(t.Context(), changed, true)
		require.ErrorContains(t, err, before)
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, err, "; name other rows with --data")
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), "1,1,", "2,1,", 1)), 0o600))
	_, _, err = c.Evaluated(t.Context(), notes, true)
	require.ErrorContains(t, err, "it has changed since then")
}

// The kinds to train on are those that are registered, in programs with more of them too.
func TestUntrainableData(t *testing.T) {
	c := catalog.New()
	require.NoError(t, c.RegisterData("own", catalog.DataKind{Usage: "own:X", Doc: "of this test",
		Train: func(string, catalog.Options) (catalog.Dataset, error) { return nil, nil }}))
	_, err := c.Data("idx:images", catalog.Options{})
	require.ErrorContains(t, err, `data "idx:images" works only with predict; to train, use cifar:DIR (CIFAR-10`)
	require.ErrorContains(t, err, "own:X (of this test)")
	require.NotContains(t, err.Error(), "npy")
}

// Only rows of the very file are those of the training, and only if the kind of data has no
// test files of its own.
func TestTrainedOn(t *testing.T) {
	c, path := catalog.New(), shapes(t)
	notes := notesOf(t, path, catalog.Options{Target: "kind"})
	link := filepath.Join(t.TempDir(), "link.csv")
	require.NoError(t, os.Symlink(path, link))
	for name, want := range map[string]bool{
		"csv:" + path: true, "csv:" + link: true, "csv:" + shapes(t): false, "csv:nosuch": false, "text:" + path: false, "mnist:" + filepath.Dir(path): false, "nosuch": false,
	} {
		require.Equal(t, want, c.TrainedOn(notes, name), name)
	}
	require.False(t, c.TrainedOn(map[string]string{"data": "mnist:" + t.TempDir()}, "mnist:"+t.TempDir()))
	require.False(t, c.TrainedOn(nil, "csv:"+path), "an older file does not say what it was trained on")
}
