package job

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

// DefaultData is the dataset of a Spec without one that does not resume.
const DefaultData = "digits"

// findData finds the dataset of f. What f does not say, and its checkpoint notes, is as
// noted. f then says it.
func findData(f *Spec) (catalog.Dataset, error) {
	notes, given := map[string]string(nil), f.Data != ""
	if f.Saving.Resume != "" {
		if err := f.Saving.checkResumeDir(f.Place.Nodes); err != nil && !given {
			return nil, err // rather than that the config does not suit the default
		}
		notes = newestNotes(f.Saving.Resume)
	}
	f.Data = cmp.Or(f.Data, notes["data"], DefaultData)
	f.Options = notedOptions(f, notes)
	d, err := f.Catalog.Data(f.Data, f.Options)
	var option *catalog.OptionError
	switch {
	case err == nil || errors.As(err, &option):
		return d, err
	case !given && notes["data"] != "":
		return nil, fmt.Errorf("--resume %s was trained on %s: %w; if the rows are elsewhere, name them with --data", f.Saving.Resume, f.Data, err)
	}
	return nil, fmt.Errorf("--data: %w", err)
}

// notedOptions returns the options of f, and for those that it leaves out those in the notes of
// a checkpoint, if its kind of data has them.
func notedOptions(f *Spec, notes map[string]string) catalog.Options {
	o := f.Options
	kind, _, _ := strings.Cut(f.Data, ":")
	k, _ := f.Catalog.DataKind(kind)
	noted := func(option string) string {
		if !slices.Contains(k.Options, option) {
			return ""
		}
		return notes[option]
	}
	o.Target = cmp.Or(o.Target, noted(catalog.OptionTarget))
	if o.Holdout != 0 || o.Test != "" { // each replaces the other
		return o
	}
	if o.Test = noted(catalog.OptionTest); o.Test == "" {
		o.Holdout, _ = strconv.ParseFloat(noted(catalog.OptionHoldout), 64) // 0, the default, if there is none
	}
	return o
}

// errSeen ends the reading of a file after its header.
var errSeen = errors.New("the header is all that is needed")

// newestNotes returns the notes of the newest checkpoint in a directory that has a readable
// header: all checkpoints there are of one run. It returns nil if there is none, which whoever
// resumes reports.
func newestNotes(dir string) (notes map[string]string) {
	steps, _ := checkpoint.Steps(dir)
	for _, step := range slices.Backward(steps) {
		_, err := checkpoint.Load(filepath.Join(dir, checkpoint.FileName(step)), func(h checkpoint.Header) error {
			notes = h.Metadata
			return errSeen
		})
		if errors.Is(err, errSeen) && checkpoint.Summed(notes) {
			return notes
		}
	}
	return nil
}
