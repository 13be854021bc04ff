package job

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// A storedModel is the model that the notes of a file describe, before any memory is
// allocated for it.
type storedModel struct {
	catalog.Stored
	params []*nn.Param // names and shapes
	slots  []string    // of the optimizer, for checkpoints
}

// stored returns the model that the notes of a file describe.
func (l *Loader) stored(notes map[string]string) (*storedModel, error) {
	described, cfg, err := l.Catalog.Stored(notes)
	if err != nil {
		return nil, err
	}
	declared, err := described.Declare()
	if err != nil {
		return nil, fmt.Errorf("the config in it: %w", l.Catalog.Locate(cfg, err))
	}
	m := &storedModel{Stored: described, params: declared.Declared()}
	if !checkpoint.Summed(notes) {
		return m, nil
	}
	optimizer, err := l.Catalog.Optimizer(cfg)
	if err != nil {
		return nil, fmt.Errorf("the config in it: %w", err)
	}
	m.slots = optimizer.Slots()
	return m, nil
}

// fitsStored returns an error for a file whose tensors are not those of the model that its
// own notes describe, or do not fit into the memory of this machine.
func (l *Loader) fitsStored(h checkpoint.Header) error {
	if h.Metadata["format"] != checkpoint.Format {
		return errors.New("it does not describe its model; it was not written by ringtrain train")
	}
	m, err := l.stored(h.Metadata)
	if err != nil {
		return err
	}
	return fits(h, m.params, m.slots)
}

// A misfitError explains why an intact file is not usable for a model.
type misfitError struct{ why string }

func (e *misfitError) Error() string { return e.why }

func misfitf(format string, args ...any) error { return &misfitError{fmt.Sprintf(format, args...)} }

// fits compares a header with the parameters of a model and the slots of its optimizer.
// A file without a checksum has only weights.
func fits(h checkpoint.Header, params []*nn.Param, slots []string) error {
	if !checkpoint.Summed(h.Metadata) {
		if err := fit("", params, h.Tensors); err != nil {
			return err
		}
		return affordable(h, params)
	}
	parts, err := h.Parts()
	if err != nil {
		return err
	}
	if err := fit("", params, parts.Weights); err != nil {
		return err
	}
	have := slices.Sorted(maps.Keys(parts.Slots))
	kept := slices.DeleteFunc(slices.Clone(have), func(slot string) bool { return trainer.IsRoundSlot(slot, slots) })
	if want := slices.Sorted(slices.Values(slots)); !slices.Equal(want, kept) {
		return misfitf("it does not fit the optimizer of the config: it has the slots %.80s, the optimizer keeps %s", listing(kept), listing(want))
	}
	for _, slot := range have {
		if err := fit("slot "+slot+", ", params, parts.Slots[slot]); err != nil {
			return err
		}
	}
	if len(parts.Best) > 0 {
		if err := fit("best weights, ", params, parts.Best); err != nil {
			return err
		}
	}
	if len(parts.Residuals) > crew.MaxRanks {
		return misfitf("it has the residuals of %d ranks, more than the %d that a job can have", len(parts.Residuals), crew.MaxRanks)
	}
	for rank, residual := range parts.Residuals {
		if err := fit(fmt.Sprintf("residual of rank %d, ", rank), params, residual); err != nil {
			return err
		}
	}
	return affordable(h, params)
}

// affordable returns an error if this machine lacks the memory for the file and for the
// values and gradients of the model.
func affordable(h checkpoint.Header, params []*nn.Param) error {
	bytes := 0.
	for _, t := range h.Tensors {
		bytes += float64(4 * elements(t.Shape))
	}
	for _, q := range params {
		bytes += float64(8 * elements(q.Shape))
	}
	if room := machine.Memory(); bytes > float64(room) {
		return misfitf("its tensors and its model take %.3g GB, more than the %.3g GB of memory of this machine", bytes/1e9, float64(room)/1e9)
	}
	return nil
}

// Holdable returns an error if the memory of this machine is too small for the rows of a
// dataset. A sparse file easily claims too many.
func Holdable(i catalog.Info) error {
	if room := machine.Memory(); i.Bytes > float64(room) {
		return fmt.Errorf("the rows of %s take %.3g GB, more than the %.3g GB of memory of this machine", i.Name, i.Bytes/1e9, float64(room)/1e9)
	}
	return nil
}

// elements returns the number of elements of a shape, as a float, which cannot overflow.
func elements(shape []int) float64 {
	n := 1.
	for _, d := range shape {
		n *= float64(d)
	}
	return n
}

// fit compares the names, shapes and types of tensors with a model's parameters. part
// says in errors what the tensors are.
func fit(part string, params []*nn.Param, saved []checkpoint.Entry) error {
	byName := map[string]checkpoint.Entry{}
	for _, t := range saved {
		byName[t.Name] = t
	}
	for _, q := range params {
		t, ok := byName[q.Name]
		switch {
		case !ok:
			return misfitf("it does not fit the model: %.80sit has no %s", part, q.Name)
		case !slices.Equal(t.Shape, q.Shape):
			return misfitf("it does not fit the model: %.80sits %s has shape %v, the model's %v", part, q.Name, t.Shape, q.Shape)
		case t.Type != checkpoint.Float32:
			return misfitf("it does not fit the model: %.80sits %s is of type %s, not %s", part, q.Name, t.Type, checkpoint.Float32)
		}
		delete(byName, q.Name)
	}
	for _, t := range saved {
		if _, extra := byName[t.Name]; extra {
			return misfitf("it does not fit the model, which has no %.80q", t.Name)
		}
	}
	return nil
}
