package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// trained is weights from disk in the model that they belong to, and rows for
// it.
type trained struct {
	model   *nn.Classifier
	weights []checkpoint.Named
	rows    *data.Images
}

// loadTrained opens a checkpoint and the rows that a dataset has for testing,
// with their labels if these are wanted. Its errors are the user's to mend.
func (a *app) loadTrained(ctx context.Context, path, source string, labelled bool, backend nn.Backend) (*trained, error) {
	weights, notes, path, err := a.openWeights(path)
	if err != nil {
		return nil, err
	}
	described, err := a.stored(notes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	test, err := a.catalog.Test(source, labelled)
	if err != nil {
		return nil, err
	}
	if test.Height != described.height || test.Width != described.width {
		return nil, fmt.Errorf("%s is for images of %dx%d, the data has %dx%d", path, described.height, described.width, test.Height, test.Width)
	}
	if err := holdable(source, test.Rows, test.Height, test.Width); err != nil {
		return nil, err
	}
	if test.Cache != "" {
		a.prepareCache(test.Cache)
	}
	t := &trained{weights: weights}
	if t.rows, err = test.Open(ctx); err != nil {
		return nil, err
	}
	if labelled && t.rows.Classes > described.classes {
		return nil, fmt.Errorf("%s knows %d classes, the data has %d", path, described.classes, t.rows.Classes)
	}
	t.model, err = described.restore(path, weights, backend)
	return t, err
}

// openWeights reads weights and the notes about them: from a file of either
// kind, or from a directory of --out the newest.
func (a *app) openWeights(path string) (weights []checkpoint.Named, notes map[string]string, from string, err error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		weights, notes, err = a.readWeights(path)
		return weights, notes, path, err
	}
	plain := filepath.Join(path, weightsFile)
	weights, notes, err = a.readWeights(plain)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, plain, err
	}
	t, newest, broken, none := checkpoint.Latest(path, a.fitsStored)
	switch {
	case none == nil && (err != nil || t.Step > stepOf(notes)):
		return t.Weights, t.Notes, newest, nil
	case err != nil && len(broken) > 0:
		return nil, nil, "", broken[0]
	}
	return weights, notes, plain, err
}

// readWeights reads one file. Weights that are not finite are refused.
func (a *app) readWeights(path string) ([]checkpoint.Named, map[string]string, error) {
	f, err := checkpoint.Load(path, a.fitsStored)
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

// restore builds the model, with weights that fit it.
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

// setWeights gives all parameters the values of a checkpoint, which fits them.
func setWeights(path string, b nn.Backend, p *nn.Params, weights []checkpoint.Named) error {
	if _, _, remote := p.Values.Device(); remote {
		arena, err := slotArena(p, weights)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		b.Copy(p.Values, arena)
		return b.Sync(context.Background()) // it ends: a device copies, or has failed
	}
	for _, t := range weights {
		if err := p.SetWeight(t.Name, t.Tensor); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}
