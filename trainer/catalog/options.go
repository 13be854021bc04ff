package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Options say how to find training and test rows, besides the name of a dataset. A kind
// of dataset uses only some of them, see DataKind.Options.
type Options struct {
	Target  string  // column to predict
	Holdout float64 // fraction of the rows to evaluate on, above 0 and below 1; 0: the default of the kind
	Test    string  // file of the rows to evaluate on, instead of a fraction
}

// Names of Options. They are names of flags, and of notes in checkpoints.
const (
	OptionTarget  = "target"
	OptionHoldout = "holdout"
	OptionTest    = "test-data"
)

// An Option is one of Options.
type Option struct{ Name, Value string }

// List returns all Options, always in the same order. An option that is not set has an
// empty value.
func (o Options) List() []Option {
	fraction := ""
	if o.Holdout != 0 {
		fraction = strconv.FormatFloat(o.Holdout, 'g', -1, 64)
	}
	return []Option{{OptionTarget, o.Target}, {OptionHoldout, fraction}, {OptionTest, o.Test}}
}

// An OptionError is a mistake in an option. Its text names the flag.
type OptionError struct {
	Option string // its name
	Text   string
}

// Error returns the text.
func (e *OptionError) Error() string { return e.Text }

// optionErrorf returns an OptionError. Its text begins with the flag.
func optionErrorf(option, format string, args ...any) error {
	return &OptionError{Option: option, Text: "--" + option + " " + fmt.Errorf(format, args...).Error()}
}

// check returns an error for options that a kind of dataset does not use, or that cannot
// be combined.
func (o Options) check(kind string, k DataKind) error {
	for _, option := range o.List() {
		if option.Value == "" || slices.Contains(k.Options, option.Name) {
			continue
		}
		usable := "it has no options"
		if len(k.Options) > 0 {
			usable = "it takes --" + strings.Join(k.Options, ", --")
		}
		return optionErrorf(option.Name, "does not apply to %s; %s", kind, usable)
	}
	switch {
	case o.Holdout != 0 && !(o.Holdout > 0 && o.Holdout < 1):
		return optionErrorf(OptionHoldout, "must be greater than 0 and less than 1, not %v", o.Holdout)
	case o.Holdout != 0 && o.Test != "":
		return optionErrorf(OptionHoldout, "cannot be combined with --%s, which names all rows to evaluate on", OptionTest)
	}
	return nil
}

// OptionUsage says for help which kinds of data use an option, and with which default. It
// is "" if none does.
func (c *Catalog) OptionUsage(option string) string {
	var kinds []string
	for _, kind := range c.DataKinds() {
		k := c.data[kind]
		switch {
		case !slices.Contains(k.Options, option):
		case option == OptionHoldout:
			kinds = append(kinds, fmt.Sprintf("%v of %s", k.Holdout, kind))
		default:
			kinds = append(kinds, kind)
		}
	}
	switch {
	case len(kinds) == 0:
		return ""
	case option == OptionHoldout:
		return " (default " + strings.Join(kinds, ", ") + ")"
	}
	return " (" + strings.Join(kinds, ", ") + ")"
}
