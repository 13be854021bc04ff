package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

// A Loader reads trained weights from disk.
type Loader struct {
	Catalog *catalog.Catalog // implements the names in the config of a file
	Backend nn.Backend       // holds the models until it is closed
	Cache   *Cache           // of generated data; may be nil
	Best    bool             // read the weights of the best evaluation instead of the last
}

// A Loaded file of weights has rows to use them with.
type Loaded struct {
	Weights  []checkpoint.Named
	Examples catalog.Examples
	Source   string   // where the rows come from
	Seen     bool     // the rows include those that the weights were trained on
	Warnings []string // of the dataset, see catalog.Info, and about its rows, see catalog.Doubter

	path    string
	backend nn.Backend
}

// Load opens a checkpoint, which is a file or a Saving.Dir, and the test rows of a
// dataset, with their labels if labelled is set. An empty source means the rows that the
// training was evaluated on. Its errors are for the user to correct.
func (l *Loader) Load(ctx context.Context, path, source string, labelled bool) (*Loaded, error) {
	held, seen := false, false
	t, err := l.load(ctx, path, false, func(notes map[string]string) (rows catalog.Dataset, err error) {
		if source == "" {
			rows, held, err = l.Catalog.Evaluated(ctx, notes, labelled)
			return rows, err
		}
		seen = l.Catalog.TrainedOn(notes, source)
		if rows, err = l.Catalog.Test(source, labelled); err != nil {
			return nil, fmt.Errorf("--data: %w", err)
		}
		return rows, nil
	})
	if err != nil {
		return nil, err
	}
	if t.Seen = seen; held {
		t.Source += " (held out)"
	}
	return t, nil
}

// LoadInput is Load with the rows of files or of a stream, whose format may be empty as in
// catalog.Input.
func (l *Loader) LoadInput(ctx context.Context, path, format string, in catalog.Input) (*Loaded, error) {
	return l.load(ctx, path, true, func(map[string]string) (catalog.Dataset, error) { return l.Catalog.Input(format, in) })
}

// load opens a checkpoint and the rows that find finds for its notes. files says that these are
// files, which no --data chose.
func (l *Loader) load(ctx context.Context, path string, files bool, find func(notes map[string]string) (catalog.Dataset, error)) (*Loaded, error) {
	weights, notes, path, err := l.openWeights(path)
	if err != nil {
		return nil, err
	}
	described, err := l.stored(notes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	rows, err := find(notes)
	if err != nil {
		return nil, err
	}
	if err := described.Fits(rows); err != nil {
		return nil, aboutFile(path, files, err)
	}
	info := rows.Info()
	if err := Holdable(info); err != nil {
		return nil, err
	}
	if info.Cache != "" {
		l.Cache.Prepare(info.Cache)
	}
	t := &Loaded{Weights: weights, Source: info.Name, Warnings: info.Warnings, path: path, backend: l.Backend}
	if t.Examples, err = described.Open(ctx, rows); err != nil {
		return nil, aboutFile(path, files, err)
	}
	t.Warnings = slices.Concat(t.Warnings, t.Late())
	return t, nil
}

// Late returns warnings about rows that were read since Load, as a Predictor reads them.
func (t *Loaded) Late() []string {
	d, ok := t.Examples.(catalog.Doubter)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(d.Doubts(), func(w string) bool { return slices.Contains(t.Warnings, w) })
}

// aboutFile adds the name of a file of weights to a *catalog.MisfitError. For rows in files the
// advice is not about --data.
func aboutFile(path string, files bool, err error) error {
	var misfit *catalog.MisfitError
	switch {
	case !errors.As(err, &misfit):
		return err
	case files && misfit.Data != "":
		return fmt.Errorf("%s %w", path, &catalog.MisfitError{Text: misfit.Text + "; give files like those it was trained on"})
	}
	return fmt.Errorf("%s %w", path, err)
}

// Task returns a task with the weights, whose test rows are all rows.
func (t *Loaded) Task() (trainer.Task, error) {
	task, err := t.Examples.Task(t.backend)
	if err != nil {
		return nil, err
	}
	return task, setWeights(t.path, t.backend, task.Params(), t.Weights)
}

// Predictor returns a predictor with the weights, for all rows.
func (t *Loaded) Predictor() (catalog.Predictor, error) {
	p, err := t.Examples.Predictor(t.backend)
	if err != nil {
		return nil, err
	}
	return p, setWeights(t.path, t.backend, p.Params(), t.Weights)
}

// Generator returns a generator with the weights of a checkpoint, which is a file or a
// Saving.Dir. Its errors are for the user to correct.
func (l *Loader) Generator(path string) (catalog.Generator, error) {
	weights, notes, path, err := l.openWeights(path)
	if err != nil {
		return nil, err
	}
	described, err := l.stored(notes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	generative, ok := described.Stored.(catalog.Generative)
	if !ok {
		return nil, fmt.Errorf("%s cannot generate text; use ringtrain predict", path)
	}
	g, err := generative.Generator(l.Backend)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return g, setWeights(path, l.Backend, g.Params(), weights)
}

// openWeights reads weights and their notes from a checkpoint, a file of weights, or the
// newest of these in an output directory. from is the path of the file.
func (l *Loader) openWeights(path string) (weights []checkpoint.Named, notes map[string]string, from string, err error) {
	if l.Best {
		return l.openBest(path)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		weights, notes, err = l.readWeights(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; give the --out of a run, or a file in it", err)
		}
		return weights, notes, path, err
	}
	plain := filepath.Join(path, weightsFile)
	weights, notes, err = l.readWeights(plain)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, plain, err
	}
	t, newest, broken, none := checkpoint.Latest(path, l.fitsStored)
	switch {
	case none == nil && (err != nil || t.Step > stepOf(notes)):
		return t.Weights, t.Notes, newest, nil
	case err != nil && len(broken) > 0:
		return nil, nil, "", broken[0]
	case err != nil:
		return nil, nil, "", fmt.Errorf("the directory %s has neither a checkpoint nor %s; give the --out of a run, or a file in it", path, plain)
	}
	return weights, notes, plain, nil
}

// readWeights reads one file. Weights that are not finite are an error.
func (l *Loader) readWeights(path string) ([]checkpoint.Named, map[string]string, error) {
	f, err := checkpoint.Load(path, l.fitsStored)
	if err != nil {
		return nil, nil, err
	}
	if checkpoint.Summed(f.Metadata) {
		t, err := f.Training()
		if err != nil {
			err = fmt.Errorf("checkpoint %s: %w", path, err)
		}
		return t.Weights, t.Notes, err
	}
	if err := f.CheckFinite(); err != nil {
		return nil, nil, fmt.Errorf("checkpoint %s: %w", path, err)
	}
	return f.Tensors, f.Metadata, nil
}

func stepOf(notes map[string]string) int {
	step, _ := strconv.Atoi(notes["step"])
	return step
}
