package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// optionalImages are images that were found with options.
type optionalImages struct {
	catalog.ImageDataset
	options catalog.Options
}

func (d optionalImages) Info() catalog.Info {
	i := d.ImageDataset.Info()
	i.Options = d.options
	return i
}

// withOptions makes the data of a Spec a kind of dataset that takes all options.
func withOptions(t *testing.T, f *Spec) {
	name, images := f.Data, catalog.New()
	require.NoError(t, f.Catalog.RegisterData("optional", catalog.DataKind{
		Options: []string{catalog.OptionTarget, catalog.OptionHoldout, catalog.OptionTest}, Holdout: .25,
		Train: func(_ string, o catalog.Options) (catalog.Dataset, error) {
			d, err := images.Data(name, catalog.Options{})
			if err != nil {
				return nil, err
			}
			return optionalImages{d.(catalog.ImageDataset), o}, nil
		},
	}))
	f.Data, f.Options = "optional", catalog.Options{Target: "x"}
}

// Workers compare the options that choose rows, except paths.
func TestWorkersCompareOptions(t *testing.T) {
	f := tinySpec(t)
	withOptions(t, &f)
	for want, change := range map[string]catalog.Options{
		"--target":  {Target: "y"},
		"--holdout": {Target: "x", Holdout: .5},
	} {
		for _, o := range trainRanks(t, f, func(rank int, f *Spec) {
			if rank == 3 {
				f.Options = change
			}
		}) {
			require.ErrorAs(t, o.err, new(*trainer.SettingsError))
			require.ErrorContains(t, o.err, want)
		}
	}
	f.Options.Test = "here.csv"
	for _, o := range trainRanks(t, f, func(rank int, f *Spec) {
		if rank == 3 {
			f.Options.Test = "there.csv"
		}
	}) {
		require.NoError(t, o.err)
	}
}

// Resuming with other options is a warning, and one that is given as its default is no
// other option.
func TestResumeWithOtherOptions(t *testing.T) {
	f := tinySpec(t)
	withOptions(t, &f)
	f.Steps, f.Saving.Dir = 3, t.TempDir()
	run(t, f)
	f.Saving = Saving{Resume: f.Saving.Dir}
	f.Options.Holdout = .25
	require.Empty(t, run(t, f).said())
	f.Steps, f.Options = 8, catalog.Options{Target: "y", Test: "z.csv"}
	require.Contains(t, run(t, f).said(), ": --target (y, was x), --holdout (not given, was 0.25), --test-data (z.csv, was not given); the result will differ")
}

// A mistake in an option names its flag, and not --data.
func TestMistakesInOptions(t *testing.T) {
	f := tinySpec(t)
	f.Options.Target = "x"
	_, err := f.Settle()
	require.EqualError(t, err, "--target does not apply to mnist; it has no options")
}
