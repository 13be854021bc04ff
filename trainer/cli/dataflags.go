package cli

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// addData adds --data and its options.
func addData(flags *pflag.FlagSet, c *catalog.Catalog, name *string, o *catalog.Options) {
	flags.StringVar(name, "data", "digits", "training and test rows: `SOURCE` is "+c.TrainUsage())
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

// checkData checks the options of --data by themselves.
func checkData(flags *pflag.FlagSet, o catalog.Options) error {
	if flags.Changed(catalog.OptionHoldout) && o.Holdout == 0 {
		return errors.New("--holdout must be greater than 0 and less than 1, not 0")
	}
	return checkEmpty(flags, catalog.OptionTarget, catalog.OptionTest)
}
