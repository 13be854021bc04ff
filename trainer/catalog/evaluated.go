package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/config"
)

// Evaluated finds the rows on which a run was evaluated that left these notes. Rows
// that were held out of the training file are held out of it again, if it has not changed.
// held reports whether that was so.
func (c *Catalog) Evaluated(ctx context.Context, notes map[string]string, labelled bool) (d Dataset, held bool, err error) {
	name := cmp.Or(notes["data"], "digits") // files of older versions do not say it
	switch kind, _, _ := strings.Cut(name, ":"); {
	case notes[OptionTest] != "":
		name = kind + ":" + notes[OptionTest]
	case notes[OptionHoldout] != "":
		d, err = c.heldOut(ctx, name, notes)
		if err != nil {
			err = fmt.Errorf("the rows that train evaluated on were held out of %s: %w; name other rows with --data", name, err)
		}
		return d, true, err
	}
	d, err = c.Test(name, labelled)
	if errors.Is(err, fs.ErrNotExist) { // the user has not named the file now
		err = fmt.Errorf("train evaluated on %s: %w; name other rows with --data", name, err)
	}
	return d, false, err
}

// heldOut finds the rows of a run again, and returns an error if they are not the same.
func (c *Catalog) heldOut(ctx context.Context, name string, notes map[string]string) (Dataset, error) {
	fraction, err := strconv.ParseFloat(notes[OptionHoldout], 64)
	if err != nil {
		return nil, fmt.Errorf("the fraction is noted as %.20q", notes[OptionHoldout])
	}
	d, err := c.Data(name, Options{Target: notes[OptionTarget], Holdout: fraction})
	if err != nil {
		return nil, err
	}
	cfg, err := config.Parse("config", notes[noteConfig], nil)
	if err != nil {
		return nil, err
	}
	p, err := c.Problem(cfg, d)
	if err != nil {
		return nil, err
	}
	rows, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	if rows.Sum() != notes["data_sha256"] {
		return nil, fmt.Errorf("it has changed since then")
	}
	return d, nil
}

// TrainedOn reports whether the rows that Test finds under a name include those of a run
// that left these notes. Kinds of data with training and test files of their own do not.
func (c *Catalog) TrainedOn(notes map[string]string, name string) bool {
	kind, file, _ := strings.Cut(name, ":")
	other, trained, _ := strings.Cut(notes["data"], ":")
	if kind != other || c.data[kind].Holdout == 0 {
		return false
	}
	a, err := os.Stat(file)
	b, none := os.Stat(trained)
	return err == nil && none == nil && os.SameFile(a, b)
}
