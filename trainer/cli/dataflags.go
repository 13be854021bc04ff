package cli

import (
	"cmp"
	"errors"

	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job"
)

// addData adds --data and its options.
func addData(flags *pflag.FlagSet, c *catalog.Catalog, name *string, o *catalog.Options) {
	flags.Var(source{name}, "data", "training and test rows: `SOURCE` is "+c.TrainUsage()+"; with train --resume, those of the checkpoint")
	for _, option := range []struct {
		name, usage string
		define      func(name, usage string)
	}{
		{catalog.OptionTarget, "column `NAME` to predict", func(name, usage string) { flags.StringVar(&o.Target, name, "", usage) }},
		{catalog.OptionHoldout, "evaluate on a `FRACTION` of the rows, and train on the others", func(name, usage string) { flags.Float64Var(&o.Holdout, name, 0, usage) }},
		{catalog.OptionTest, "evaluate on all rows of `FILE`, and train on all rows of --data", func(name, usage string) { flags.StringVar(&o.Test, name, "", usage) }},
	} {
		option.define(option.name, option.usage+c.OptionUsage(option.name))
	}
}

// A source is the value of --data. It stays empty if the flag is left out, so that a training
// that resumes knows.
type source struct{ name *string }

// Set implements pflag.Value.
func (s source) Set(name string) error {
	if name == "" {
		return errEmpty
	}
	*s.name = name
	return nil
}

// String implements pflag.Value. help calls it on the zero value, too.
func (s source) String() string {
	if s.name == nil {
		return ""
	}
	return cmp.Or(*s.name, job.DefaultData)
}

// Type implements pflag.Value.
func (s source) Type() string { return "string" }

// checkData checks the options of --data by themselves.
func checkData(flags *pflag.FlagSet, o catalog.Options) error {
	if flags.Changed(catalog.OptionHoldout) && o.Holdout == 0 {
		return errors.New("--holdout must be greater than 0 and less than 1, not 0")
	}
	return checkEmpty(flags, catalog.OptionTarget, catalog.OptionTest)
}
