package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// trained is weights from disk in the model that they belong to, and data for
// it.
type trained struct {
	model   *nn.Classifier
	weights []checkpoint.Named
	set     *data.Set
}

// loadTrained opens a checkpoint and a dataset. Its errors are the user's to
// mend.
func (a *app) loadTrained(ctx context.Context, path, source string, backend nn.Backend) (*trained, error) {
	weights, notes, path, err := openWeights(path)
	if err != nil {
		return nil, err
	}
	named, err := a.catalog.Data(source)
	if err != nil {
		return nil, err
	}
	t := &trained{weights: weights}
	if t.set, err = named.Open(ctx); err != nil {
		return nil, err
	}
	t.model, err = a.restore(path, weights, notes, t.set, backend)
	return t, err
}

// openWeights reads weights and the notes about them: from a file of either
// kind, or from a directory of --out the newest.
func openWeights(path string) (weights []checkpoint.Named, notes map[string]string, from string, err error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return readWeights(path)
	}
	plain := filepath.Join(path, weightsFile)
	weights, notes, _, err = readWeights(plain)
	t, newest, broken, none := checkpoint.Latest(path)
	switch {
	case none == nil && (err != nil || t.Step > stepOf(notes)):
		return t.Weights, t.Notes, newest, nil
	case err != nil && len(broken) > 0:
		return nil, nil, "", broken[0]
	}
	return weights, notes, plain, err
}

// readWeights reads one file.
func readWeights(path string) ([]checkpoint.Named, map[string]string, string, error) {
	t, err := checkpoint.Read(path)
	if err == nil {
		return t.Weights, t.Notes, path, nil
	}
	f, loadErr := checkpoint.Load(path)
	switch {
	case loadErr != nil:
		return nil, nil, path, loadErr
	case f.Metadata["sha256"] != "":
		return nil, nil, path, err
	case f.Metadata["format"] != checkpoint.Format:
		return nil, nil, path, fmt.Errorf("%s: it says nothing of the model it belongs to; it was not written by ringtrain train", path)
	}
	return f.Tensors, f.Metadata, path, nil
}

func stepOf(notes map[string]string) int {
	step, _ := strconv.Atoi(notes["step"])
	return step
}

// restore builds the model that a checkpoint describes, with its weights.
func (a *app) restore(path string, weights []checkpoint.Named, notes map[string]string, set *data.Set, backend nn.Backend) (*nn.Classifier, error) {
	cfg, err := config.Parse(path, notes["config"], nil)
	if err != nil {
		return nil, fmt.Errorf("the config in it: %w", err)
	}
	layers, err := a.catalog.Layers(cfg)
	if err != nil {
		return nil, err
	}
	height, _ := strconv.Atoi(notes["height"])
	width, _ := strconv.Atoi(notes["width"])
	classes, _ := strconv.Atoi(notes["classes"])
	if height < 1 || width < 1 || classes < 1 || height > 1<<16 || width > 1<<16 {
		return nil, fmt.Errorf("%s: its notes do not say for which images and classes it is", path)
	}
	if set.Test.Height != height || set.Test.Width != width {
		return nil, fmt.Errorf("%s is for images of %dx%d, the data has %dx%d", path, height, width, set.Test.Height, set.Test.Width)
	}
	if set.Test.Classes > classes {
		return nil, fmt.Errorf("%s knows %d classes, the data has %d", path, classes, set.Test.Classes)
	}
	model, err := nn.NewClassifier(backend, layers, []int{height * width}, classes, 0)
	if err != nil {
		return nil, err
	}
	return model, setWeights(path, backend, model.Params(), weights)
}

// setWeights gives all parameters the values of a checkpoint.
func setWeights(path string, b nn.Backend, p *nn.Params, weights []checkpoint.Named) error {
	if err := fits(path, p.List, weights); err != nil {
		return err
	}
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

// fits compares the names and shapes of a checkpoint with those of a model.
func fits(path string, list []*nn.Param, saved []checkpoint.Named) error {
	byName := map[string]checkpoint.Named{}
	for _, n := range saved {
		byName[n.Name] = n
	}
	for _, q := range list {
		n, ok := byName[q.Name]
		if !ok {
			return fmt.Errorf("%s does not fit the model: it has no %s", path, q.Name)
		}
		if shape := []int(n.Tensor.Shape()); fmt.Sprint(shape) != fmt.Sprint(q.Shape) {
			return fmt.Errorf("%s does not fit the model: its %s has shape %v, the model's %v", path, q.Name, shape, q.Shape)
		}
		delete(byName, q.Name)
	}
	for _, n := range saved {
		if _, extra := byName[n.Name]; extra {
			return fmt.Errorf("%s does not fit the model, which has no %s", path, n.Name)
		}
	}
	return nil
}
