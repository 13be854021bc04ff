package catalog

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/config"
)

// A Dataset is rows that have been found but not read: its methods know only what
// headers say. A Task knows the datasets that it can use by further methods.
type Dataset interface {
	Info() Info
	// Task returns the name of the task that trains on the rows, unless the config names
	// another.
	Task() string
}

// Info describes a dataset.
type Info struct {
	Name        string   // as given: "digits" or "mnist:DIR"
	Train, Test int      // rows; a dataset to evaluate or predict has only Test
	Bytes       float64  // of all rows in the memory of a process; a float cannot overflow
	Options     Options  // that chose the rows, with the defaults of the kind
	Cache       string   // the file name in data.OpenCache that opening uses; "" if it uses none
	Warnings    []string // about mistakes in the rows that do not prevent their use, each one line
}

// A DataKind finds datasets of one kind. It receives what follows the kind and a colon in
// the name: "DIR" in "mnist:DIR". It reads as much as it needs to report mistakes before
// anything starts: headers where the format has them, otherwise, as with CSV, all rows.
type DataKind struct {
	Usage string // how to name one, such as "mnist:DIR"
	Doc   string // what it is, in a few words
	// Options are the names of the Options that Train uses. Others are refused.
	Options []string
	// Holdout is what Train receives as Options.Holdout if neither that nor Options.Test
	// is given.
	Holdout float64
	// Train finds rows to train on and rows to evaluate; nil if there are none.
	Train func(arg string, o Options) (Dataset, error)
	// Test finds rows for a trained model, with labels if labelled is set. It is nil if
	// there are none.
	Test func(arg string, labelled bool) (Dataset, error)
	// Input finds rows for a trained model, without labels, in files or a stream. It may
	// read headers. nil if rows of this kind are not in files of their own.
	Input func(in Input) (Dataset, error)
	// Suffixes are the ends of the names of such files, in lower case, such as ".csv".
	Suffixes []string
	// Unlabelled means that Test never finds labels, or that there is only Input.
	Unlabelled bool
}

// RegisterData adds a kind of dataset. It returns an error if the kind exists, or if k finds no rows.
func (c *Catalog) RegisterData(kind string, k DataKind) error {
	if _, taken := c.data[kind]; taken || kind == "" || strings.Contains(kind, ":") {
		return fmt.Errorf("catalog: the kind of data %q is registered already, is empty, or has a colon", kind)
	}
	if k.Train == nil && k.Test == nil && k.Input == nil {
		return fmt.Errorf("catalog: the kind of data %q finds no rows: set Train, Test or Input", kind)
	}
	c.data[kind] = k
	return nil
}

// Data finds a dataset to train on, such as "digits" or "mnist:DIR". It reads headers but
// not rows. It returns an *OptionError for a mistake in o.
func (c *Catalog) Data(name string, o Options) (Dataset, error) {
	kind, arg, _ := strings.Cut(name, ":")
	k, ok := c.data[kind]
	switch {
	case !ok:
		return nil, c.unknown(name, c.TrainUsage(), true, func(k DataKind) bool { return k.Train != nil })
	case k.Train == nil:
		return nil, fmt.Errorf("data %q works only with predict; to train, use %s", name, c.TrainUsage())
	}
	if err := o.check(kind, k); err != nil {
		return nil, err
	}
	if o.Holdout == 0 && o.Test == "" {
		o.Holdout = k.Holdout
	}
	return k.Train(arg, o)
}

// TrainUsage lists the names of datasets to train on: "digits (generated once on this
// machine) or ...".
func (c *Catalog) TrainUsage() string {
	return c.dataUsage(func(k DataKind) bool { return k.Train != nil })
}

// Test finds rows of a dataset for a trained model, with their labels if labelled is set.
// Training rows may be missing. Like Data it reads only headers.
func (c *Catalog) Test(name string, labelled bool) (Dataset, error) {
	kind, arg, _ := strings.Cut(name, ":")
	k, ok := c.data[kind]
	switch {
	case !ok || k.Test == nil && k.Input == nil:
		return nil, c.unknown(name, c.TestUsage(labelled), false, func(k DataKind) bool { return k.usable(labelled) })
	case labelled && k.Unlabelled && arg != "":
		return nil, fmt.Errorf("data %q has rows without labels; use %s", name, c.TestUsage(true))
	case k.Test == nil && arg == "":
		return nil, fmt.Errorf("data %q names no file; write %s", name, k.Usage)
	case k.Test == nil:
		return c.Input(kind, Input{Files: []string{arg}})
	}
	return k.Test(arg, labelled)
}

// TestUsage lists the names of datasets for a trained model: "digits (generated on this
// machine) or ...".
func (c *Catalog) TestUsage(labelled bool) string {
	return c.dataUsage(func(k DataKind) bool { return k.usable(labelled) })
}

// usable reports whether Catalog.Test finds rows of this kind.
func (k DataKind) usable(labelled bool) bool {
	return (k.Test != nil || k.Input != nil) && !(labelled && k.Unlabelled)
}

// unknown returns the error for a name of no kind of data. The name may be that of a file
// without its kind, which its suffix tells.
func (c *Catalog) unknown(name, usage string, train bool, usable func(DataKind) bool) error {
	kind := c.formatOfName(name)
	k := c.data[kind]
	if kind == "" || !usable(k) {
		return fmt.Errorf("unknown data %q; use %s", name, usage)
	}
	rows := name
	if train && strings.HasSuffix(k.Usage, ":DIR") {
		rows = filepath.Dir(name)
	}
	return fmt.Errorf("unknown data %q; did you mean %s:%s?", name, kind, rows)
}

// DataKinds returns the registered kinds of data, sorted by name.
func (c *Catalog) DataKinds() []string { return slices.Sorted(maps.Keys(c.data)) }

// DataKind returns a registered kind of data.
func (c *Catalog) DataKind(kind string) (DataKind, bool) {
	k, ok := c.data[kind]
	return k, ok
}

// dataUsage lists the kinds of data that have something, for errors.
func (c *Catalog) dataUsage(has func(DataKind) bool) string {
	var all []string
	for _, name := range c.DataKinds() {
		if k := c.data[name]; has(k) {
			all = append(all, fmt.Sprintf("%s (%s)", k.Usage, k.Doc))
		}
	}
	return config.Either(all)
}
