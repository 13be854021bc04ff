package catalog_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// A kind of dataset receives the options that it lists, with its default of the holdout,
// and others are refused.
func TestOptions(t *testing.T) {
	c := catalog.New()
	var got catalog.Options
	require.NoError(t, c.RegisterData("rows", catalog.DataKind{
		Usage: "rows", Options: []string{catalog.OptionHoldout, catalog.OptionTest}, Holdout: .25,
		Train: func(_ string, o catalog.Options) (catalog.Dataset, error) {
			got = o
			return nil, nil
		},
	}))
	for want, o := range map[catalog.Options]catalog.Options{
		{Holdout: .25}:     {},
		{Holdout: .5}:      {Holdout: .5},
		{Test: "rows.csv"}: {Test: "rows.csv"},
	} {
		_, err := c.Data("rows", o)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for want, o := range map[string]catalog.Options{
		"--target does not apply to rows; it takes --holdout, --test-data":                   {Target: "x"},
		"--holdout must be greater than 0 and less than 1, not 1":                            {Holdout: 1},
		"--holdout must be greater than 0 and less than 1, not -0.1":                         {Holdout: -.1},
		"--holdout must be greater than 0 and less than 1, not NaN":                          {Holdout: math.NaN()},
		"--holdout cannot be combined with --test-data, which names all rows to evaluate on": {Holdout: .5, Test: "rows.csv"},
	} {
		_, err := c.Data("rows", o)
		require.EqualError(t, err, want)
		require.ErrorAs(t, err, new(*catalog.OptionError))
	}
	for option, o := range map[string]catalog.Options{"target": {Target: "x"}, "holdout": {Holdout: .5}, "test-data": {Test: "x"}} {
		_, err := c.Data("digits", o)
		require.EqualError(t, err, "--"+option+" does not apply to digits; it has no options")
	}
	require.Contains(t, c.OptionUsage(catalog.OptionHoldout), "0.25 of rows")
	require.Contains(t, c.OptionUsage(catalog.OptionTest), "rows")
	require.NotContains(t, c.OptionUsage(catalog.OptionTarget), "rows")
}

// A kind of data needs a name of its own, and finds some rows.
func TestRegisterDataRefuses(t *testing.T) {
	c := catalog.New()
	for _, kind := range []string{"csv", "", "a:b"} {
		require.ErrorContains(t, c.RegisterData(kind, catalog.DataKind{}), "is registered already, is empty, or has a colon")
	}
	require.EqualError(t, c.RegisterData("rows", catalog.DataKind{Usage: "rows"}), `catalog: the kind of data "rows" finds no rows: set Train, Test or Input`)
	_, found := c.DataKind("rows")
	require.False(t, found)
}
