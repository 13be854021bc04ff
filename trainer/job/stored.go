package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// A Loader reads trained weights from disk.
type Loader struct {
	Catalog *catalog.Catalog // implements the names in the config of a file
	Backend nn.Backend       // holds the models
	Cache   *Cache           // of generated data; may be nil
}

// A Trained is a model with weights from disk, and rows to test it with.
type Trained struct {
	Model   *nn.Classifier
	Weights []checkpoint.Named
	Rows    *data.Images
}

// Load opens a checkpoint, which is a file or a Saving.Dir, and the test rows of a
// dataset, with their labels if labelled is set. Its errors are for the user to correct.
func (l *Loader) Load(ctx context.Context, path, source string, labelled bool) (*Trained, error) {
	weights, notes, path, err := l.openWeights(path)
	if err != nil {
		return nil, err
	}
	described, err := l.stored(notes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	test, err := l.Catalog.Test(source, labelled)
	if err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	if test.Height != described.height || test.Width != described.width {
		return nil, fmt.Errorf("%s is for images of %dx%d, but those of %s have %dx%d; give --data with the data it was trained on", path, described.height, described.width, source, test.Height, test.Width)
	}
	if err := Holdable(source, test.Rows, test.Height, test.Width); err != nil {
		return nil, err
	}
	if test.Cache != "" {
		l.Cache.Prepare(test.Cache)
	}
	t := &Trained{Weights: weights}
	if t.Rows, err = test.Open(ctx); err != nil {
		return nil, err
	}
	if labelled && t.Rows.Classes > described.classes {
		return nil, fmt.Errorf("%s knows %d classes, the data has %d", path, described.classes, t.Rows.Classes)
	}
	t.Model, err = described.restore(path, weights, l.Backend)
	return t, err
}

// openWeights reads weights and their notes from a checkpoint, a file of weights, or the
// newest of these in an output directory. from is the path of the file.
func (l *Loader) openWeights(path string) (weights []checkpoint.Named, notes map[string]string, from string, err error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		weights, notes, err = l.readWeights(path)
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
	}
	return weights, notes, plain, err
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

// restore builds the model and sets its weights, which fit it.
func (m *storedModel) restore(path string, weights []checkpoint.Named, backend nn.Backend) (*nn.Classifier, error) {
	layers, err := m.layers()
	if err != nil {
		return nil, err
	}
	model, err := nn.NewClassifier(backend, layers, []int{m.height * m.width}, m.classes, 0)
	if err != nil {
		return nil, err
	}
	return model, setWeights(path, backend, model.Params(), weights)
}
