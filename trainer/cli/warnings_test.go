package cli_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/cli"
)

// faulty is a dataset of images with a warning.
type faulty struct{ catalog.ImageDataset }

func (f faulty) Info() catalog.Info {
	info := f.ImageDataset.Info()
	info.Warnings = []string{"rows.idx:3: the row is odd"}
	return info
}

// Every command that reads rows shows the warnings about them once.
func TestWarningsAboutData(t *testing.T) {
	c := catalog.New()
	k, _ := c.DataKind("mnist")
	require.NoError(t, c.RegisterData("faulty", catalog.DataKind{
		Usage: "faulty:DIR", Doc: "images with a warning",
		Train: func(arg string, o catalog.Options) (catalog.Dataset, error) {
			d, err := k.Train(arg, o)
			return faulty{d.(catalog.ImageDataset)}, err
		},
		Test: func(arg string, labelled bool) (catalog.Dataset, error) {
			d, err := k.Test(arg, labelled)
			return faulty{d.(catalog.ImageDataset)}, err
		},
	}))
	out := filepath.Join(t.TempDir(), "run")
	rows := "faulty:" + smallDir()
	for _, args := range [][]string{
		{"train", config(t), "--data", rows, "--out", out, "--steps", "2", "--model.hidden_width", "8", "--transport", "inproc", "--json"},
		{"eval", out, "--data", rows}, {"predict", out, "--data", rows},
	} {
		var stdout, stderr bytes.Buffer
		require.Zero(t, cli.Main(c, args, &stdout, &stderr), stderr.String())
		require.Equal(t, 1, bytes.Count(stderr.Bytes(), []byte("ringtrain: warning: rows.idx:3: the row is odd\n")), "%s: %s", args[0], stderr.String())
	}
}
