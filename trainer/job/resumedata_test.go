package job

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// tableSpec returns tinySpec for a table whose column kind is to be predicted.
func tableSpec(t *testing.T) Spec {
	f := tinySpec(t)
	rows := "size,colour,weight,kind,make\n"
	for i := range 60 {
		rows += fmt.Sprintf("%d,%c,%d,%c,%c\n", i%7, 'a'+i%3, i%5, 'x'+i%2, 'k'+i%2)
	}
	f.Data, f.Options.Target = "csv:"+filepath.Join(t.TempDir(), "table.csv"), "kind"
	require.NoError(t, os.WriteFile(strings.TrimPrefix(f.Data, "csv:"), []byte(rows), 0o600))
	text := tinyConfig + "[model]\n@layers = \"Softmax.v1\"\n[optimizer]\n@optimizers = \"Adam.v1\"\n"
	require.NoError(t, os.WriteFile(f.Config, []byte(text), 0o600))
	return f
}

// A resumed job trains on the rows of its checkpoint, unless the Spec names others, and says
// which others.
func TestResumeWithTheDataOfTheCheckpoint(t *testing.T) {
	f := tableSpec(t)
	f.Options.Holdout = .3
	whole := resultOf(t, run(t, f)).WeightsSHA256
	f.Saving, f.Steps = Saving{Dir: t.TempDir(), Keep: 0}, 4
	run(t, f)
	resume := func(name string, o catalog.Options) Spec {
		again := f
		again.Data, again.Options, again.Steps, again.Saving = name, o, 6, Saving{Dir: t.TempDir(), Resume: f.Saving.Dir}
		return again
	}
	for _, o := range []catalog.Options{{}, {Target: "kind"}, {Holdout: .3}} {
		h := run(t, resume("", o))
		require.Equal(t, whole, resultOf(t, h).WeightsSHA256)
		require.Empty(t, h.said())
	}
	require.Contains(t, run(t, resume("", catalog.Options{Target: "make"})).said(), "--target (make, was kind), the data, ")

	// The target and the fraction are as noted, and the file is another one.
	path := strings.TrimPrefix(f.Data, "csv:")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	other := newFile(t, strings.Replace(string(text), "0,a,0,x,k", "6,a,0,x,k", 1))
	require.Contains(t, run(t, resume("csv:"+other, catalog.Options{})).said(), ": --data (csv:"+other+", was csv:"+path+")")

	require.NoError(t, os.Rename(path, path+".moved"))
	_, err = runError(t, t.Context(), resume("", catalog.Options{}), Options{})
	var usage *crew.UsageError
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "--resume "+f.Saving.Dir+" was trained on "+f.Data+": cannot read the CSV file: ")
	require.ErrorContains(t, err, "; if the rows are elsewhere, name them with --data")
	h := run(t, resume("csv:"+path+".moved", catalog.Options{}))
	require.Equal(t, whole, resultOf(t, h).WeightsSHA256)
	require.Empty(t, h.said(), "the name of the file is no difference")
}

// Options are those of the checkpoint if its kind of data has them and the Spec does not say
// otherwise.
func TestNotedOptions(t *testing.T) {
	held := map[string]string{"target": "price", "holdout": "0.3"}
	tested := map[string]string{"target": "price", "test-data": "test.csv"}
	for _, c := range []struct {
		data        string
		given, want catalog.Options
		notes       map[string]string
	}{
		{"csv:a", catalog.Options{}, catalog.Options{Target: "price", Holdout: .3}, held},
		{"csv:a", catalog.Options{Target: "size", Holdout: .1}, catalog.Options{Target: "size", Holdout: .1}, held},
		{"csv:a", catalog.Options{Test: "b"}, catalog.Options{Target: "price", Test: "b"}, held},
		{"csv:a", catalog.Options{}, catalog.Options{Target: "price", Test: "test.csv"}, tested},
		{"csv:a", catalog.Options{Holdout: .1}, catalog.Options{Target: "price", Holdout: .1}, tested},
		{"text:a", catalog.Options{}, catalog.Options{Holdout: .3}, held},
		{"mnist:a", catalog.Options{}, catalog.Options{}, held},
		{"csv:a", catalog.Options{}, catalog.Options{}, nil},
		{"nosuch", catalog.Options{}, catalog.Options{}, held},
	} {
		require.Equal(t, c.want, notedOptions(&Spec{Catalog: catalog.New(), Data: c.data, Options: c.given}, c.notes))
	}
}

// The data is known from a checkpoint whose header can be read. Without any, it is the default,
// and whoever resumes says that there is none.
func TestNewestNotes(t *testing.T) {
	require.Nil(t, newestNotes(filepath.Join(t.TempDir(), "none")))
	f := tinySpec(t)
	f.Saving = Saving{Dir: t.TempDir(), Every: 2, Keep: 0}
	run(t, f)
	require.Equal(t, f.Data, newestNotes(f.Saving.Dir)["data"])
	require.NoError(t, os.Truncate(stepFile(f.Saving.Dir, 6), 20))
	require.Equal(t, "4", newestNotes(f.Saving.Dir)["step"])
	require.NoError(t, os.WriteFile(stepFile(f.Saving.Dir, 6), []byte("x"), 0o600))
	require.Equal(t, f.Data, newestNotes(f.Saving.Dir)["data"])

	f.Data, f.Place.Nodes, f.Saving.Resume = "", 2, t.TempDir()
	_, err := findData(&f)
	require.NoError(t, err)
	require.Equal(t, DefaultData, f.Data)
	f.Data, f.Place.Nodes = "", 1
	_, err = findData(&f)
	require.ErrorContains(t, err, "--resume "+f.Saving.Resume+" contains no checkpoint")
}

// If the checkpoint does not fit, the error names what has changed, which is why.
func TestResumeMisfitNamesChanges(t *testing.T) {
	f := tableSpec(t)
	path, rows := strings.TrimPrefix(f.Data, "csv:"), "name,kind\n"
	for i := range 60 {
		rows += fmt.Sprintf("n%d,%c\n", i, 'x'+i%2)
	}
	require.NoError(t, os.WriteFile(path, []byte(rows), 0o600))
	f.Saving.Dir = t.TempDir()
	run(t, f)
	again := f
	again.Options.Holdout, again.Saving = .5, Saving{Resume: f.Saving.Dir}
	_, err := runError(t, t.Context(), again, Options{})
	require.ErrorContains(t, err, "has shape [2 48], the model's [2 30]; changed since then: --holdout (0.5, was 0.2), the data")
	again.Options, again.Overrides = f.Options, []config.Override{{Path: "optimizer.@optimizers", Raw: `"SGD.v1"`}}
	_, err = runError(t, t.Context(), again, Options{})
	require.ErrorContains(t, err, "; changed since then: [optimizer]")
	require.NotContains(t, err.Error(), "the data")
}
