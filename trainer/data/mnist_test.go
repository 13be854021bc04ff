package data

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeSmall writes a set of 6 and 4 images of 2x3 pixels and returns its directory.
func writeSmall(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "set")
	require.NoError(t, WriteMNIST(dir, tiny(6, 2, 3), tiny(4, 2, 3)))
	return dir
}

func TestOpenMNIST(t *testing.T) {
	dir := writeSmall(t)
	info, err := Check(dir)
	require.NoError(t, err)
	require.Equal(t, Info{TrainRows: 6, TestRows: 4, Height: 2, Width: 3}, info)
	s, err := OpenMNIST(dir)
	require.NoError(t, err)
	require.Equal(t, tiny(6, 2, 3), s.Train)
	require.Equal(t, tiny(4, 2, 3), s.Test)
}

// The files of MNIST have no place for colours.
func TestWriteMNISTRefusesColours(t *testing.T) {
	colours := &Images{Rows: 1, Channels: 3, Height: 1, Width: 1, Pixels: make([]byte, 3), Labels: make([]byte, 1)}
	require.EqualError(t, WriteMNIST(t.TempDir(), tiny(1, 1, 1), colours), "data: images in the files of MNIST must have 1 channel, not 3")
}

func TestOpenMNISTSpellings(t *testing.T) {
	dir := writeSmall(t)
	require.NoError(t, os.Rename(filepath.Join(dir, "train-images-idx3-ubyte.gz"), filepath.Join(dir, "train-images.idx3-ubyte.gz")))
	x, err := ReadIDX(filepath.Join(dir, "t10k-labels-idx1-ubyte.gz"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "t10k-labels-idx1-ubyte.gz")))
	x.Data[0] = 11
	require.NoError(t, WriteIDX(filepath.Join(dir, "t10k-labels.idx1-ubyte"), x))
	_, err = Check(dir)
	require.NoError(t, err)
	s, err := OpenMNIST(dir)
	require.NoError(t, err)
	require.Equal(t, 12, s.Train.Classes)
	require.Equal(t, 12, s.Test.Classes)
}

// Files of other datasets have the dataset's name as a prefix.
func TestOpenMNISTNames(t *testing.T) {
	rename := func(t *testing.T, dir string, name func(stem, kind string) string) {
		for _, stem := range stems {
			kind := "idx3-ubyte"
			if stem == trainLabels || stem == testLabels {
				kind = "idx1-ubyte"
			}
			require.NoError(t, os.Rename(filepath.Join(dir, stem+"-"+kind+".gz"), filepath.Join(dir, name(stem, kind))))
		}
	}
	test := func(stem string) string { return strings.Replace(stem, "t10k", "test", 1) }
	for name, spelling := range map[string]func(stem, kind string) string{
		"test":   func(stem, kind string) string { return test(stem) + "-" + kind },
		"emnist": func(stem, kind string) string { return "emnist-letters-" + test(stem) + "-" + kind + ".gz" },
		"a dot":  func(stem, kind string) string { return "my_set." + stem + "." + kind },
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeSmall(t)
			rename(t, dir, spelling)
			_, err := Check(dir)
			require.NoError(t, err)
			s, err := OpenMNIST(dir)
			require.NoError(t, err)
			require.Equal(t, tiny(6, 2, 3), s.Train)
			require.Equal(t, tiny(4, 2, 3), s.Test)
		})
	}

	dir := writeSmall(t)
	rename(t, dir, func(stem, kind string) string { return "b-" + stem + "-" + kind + ".gz" })
	require.NoError(t, WriteMNIST(dir, tiny(7, 2, 3), tiny(4, 2, 3)))
	info, err := Check(dir)
	require.NoError(t, err)
	require.Equal(t, 7, info.TrainRows, "files without a prefix take precedence")
	rename(t, dir, func(stem, kind string) string { return "a-" + stem + "-" + kind + ".gz" })
	_, err = Check(dir)
	require.ErrorContains(t, err, dir+" contains the files of 2 sets (a-, b-); put each into its own directory")
	require.NoError(t, os.Remove(filepath.Join(dir, "b-train-labels-idx1-ubyte.gz")))
	info, err = Check(dir)
	require.NoError(t, err, "an incomplete set does not count")
	require.Equal(t, 7, info.TrainRows)
	require.NoError(t, os.Remove(filepath.Join(dir, "a-t10k-images-idx3-ubyte.gz")))
	require.NoError(t, os.Remove(filepath.Join(dir, "a-t10k-labels-idx1-ubyte.gz")))
	_, err = Check(dir)
	require.ErrorContains(t, err, "no b-train-labels-idx1-ubyte (a .gz suffix")
}

func TestOpenMNISTErrors(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir string) error
		want  string
	}{
		"two files missing": {func(dir string) error {
			if err := os.Remove(filepath.Join(dir, "train-labels-idx1-ubyte.gz")); err != nil {
				return err
			}
			return os.Remove(filepath.Join(dir, "t10k-images-idx3-ubyte.gz"))
		}, "no train-labels-idx1-ubyte, no t10k-images-idx3-ubyte (a .gz suffix"},
		"labels of another set": {func(dir string) error {
			return WriteIDX(filepath.Join(dir, "train-labels-idx1-ubyte.gz"), &IDX{Dims: []int{5}, Data: make([]byte, 5)})
		}, "holds 6 images but"},
		"images of another size": {func(dir string) error {
			return WriteIDX(filepath.Join(dir, "t10k-images-idx3-ubyte.gz"), &IDX{Dims: []int{4, 3, 3}, Data: make([]byte, 36)})
		}, "they belong to different sets"},
		"images that are labels": {func(dir string) error {
			return WriteIDX(filepath.Join(dir, "t10k-images-idx3-ubyte.gz"), &IDX{Dims: []int{4}, Data: make([]byte, 4)})
		}, "images must have 3 dimensions (rows, height, width), but this file has dimensions [4]"},
		"labels that are images": {func(dir string) error {
			return WriteIDX(filepath.Join(dir, "t10k-labels-idx1-ubyte.gz"), &IDX{Dims: []int{4, 1, 1}, Data: make([]byte, 4)})
		}, "labels must have 1 dimension (rows), but this file has dimensions [4 1 1]"},
		"a broken file": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "train-images-idx3-ubyte.gz"), []byte("<html>"), 0o600)
		}, "train-images-idx3-ubyte.gz: not an IDX file"},
		"missing directory": {os.RemoveAll, "cannot read the MNIST directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeSmall(t)
			require.NoError(t, c.spoil(dir))
			_, err := OpenMNIST(dir)
			require.ErrorContains(t, err, c.want)
			_, err = Check(dir)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, dir)
		})
	}
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Check(file)
	require.ErrorContains(t, err, file+" is a file")
}
