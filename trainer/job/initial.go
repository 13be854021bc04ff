package job

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// begins reports whether the training begins with the weights of Saving.Init. A resumed one
// continues from those of its checkpoint.
func (f *Saving) begins() bool { return f.Init != "" && f.Resume == "" }

// initialWeights reads the weights of Saving.Init, which must be those of a model with these
// parameters, and what its file says about itself.
func (f *Saving) initialWeights(params []*nn.Param) (weights []checkpoint.Named, notes map[string]string, err error) {
	path := f.Init
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, weightsFile)
	}
	file, err := checkpoint.Load(path, func(h checkpoint.Header) error { return fitsWeights(h, params) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("--init: %w; give a file of weights, or the --out of a run", err)
	case err != nil:
		return nil, nil, fmt.Errorf("--init: %w", err)
	case !checkpoint.Summed(file.Metadata):
		err = file.CheckFinite()
		weights, notes = file.Tensors, file.Metadata
	default:
		var t checkpoint.Training
		t, err = file.Training()
		weights, notes = t.Weights, t.Notes
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--init: checkpoint %s: %w", path, err)
	}
	return weights, notes, nil
}

// fitsWeights returns an error for a file whose weights are not those of a model with these
// parameters. Any program may have written the file. Of a checkpoint only the weights count.
func fitsWeights(h checkpoint.Header, params []*nn.Param) error {
	weights := h.Tensors
	if checkpoint.Summed(h.Metadata) {
		parts, err := h.Parts()
		if err != nil {
			return err
		}
		weights = parts.Weights
	}
	if err := fit("", params, weights); err != nil {
		return err
	}
	return affordable(h, params)
}

// checkInit reports, before anything starts, whether --init can work. It warns if the file
// describes another model, such as other labels, whose shapes fit by chance. In a job of
// several machines only that of rank 0 needs the file, and which one is not known yet.
func checkInit(s *Training, rows catalog.Rows, stderr io.Writer) error {
	f := &s.Spec.Saving
	if !f.begins() {
		return nil
	}
	model, err := rows.Declare()
	if err != nil {
		return err
	}
	_, notes, err := f.initialWeights(model.Declared())
	if errors.Is(err, fs.ErrNotExist) && s.Spec.Place.Nodes > 1 {
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range differences(notes, rows.Notes()) {
		fmt.Fprintf(stderr, "ringtrain: warning: --init %s: it describes other %s (%s) than this data (%s), so its weights may not suit it\n", f.Init, d.name, d.was, d.now)
	}
	return nil
}

// A difference is a note about the data, such as their classes, that differs from that in a
// file of weights. Each output of the model stands for one class.
type difference struct{ name, was, now string } // both from shortly before they differ

// differences compares the notes of a file with those of the data. A file may lack some.
func differences(notes, data map[string]string) (all []difference) {
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if was, ok := notes[name]; ok && was != data[name] {
			was, now := excerpts(was, data[name])
			all = append(all, difference{name, was, now})
		}
	}
	return all
}

// excerpts returns what a and b have from shortly before the first difference.
func excerpts(a, b string) (fromA, fromB string) {
	const before, most = 20, 60
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	cut := func(s string) string {
		from := max(0, same-before)
		text := strings.ToValidUTF8(s[from:min(len(s), from+most)], "")
		if from > 0 {
			text = "..." + text
		}
		if from+most < len(s) {
			text += "..."
		}
		return text
	}
	return cut(a), cut(b)
}

// initialize gives rank 0 the weights of --init. The strategy distributes them.
func initialize(r *rank, backend nn.Backend) error {
	f := &r.training.Spec.Saving
	if !f.begins() || r.group.Rank() != 0 {
		return nil
	}
	p := r.task.Params()
	weights, _, err := f.initialWeights(p.List)
	if err == nil {
		err = setWeights(f.Init, backend, p, weights)
	}
	if err != nil {
		return crew.Usage(err)
	}
	return nil
}
