package data

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/text"
)

// Images are written again over themselves. Others are replaced only on demand, and files that
// OpenMNIST may read instead of the new ones never.
func TestMNISTConflict(t *testing.T) {
	train, test := tiny(6, 2, 3), tiny(4, 2, 3)
	dir := writeSmall(t)
	require.NoError(t, MNISTConflict(dir, train, test, false), "nothing would be lost")
	require.NoError(t, MNISTConflict(filepath.Join(dir, "new"), train, test, false))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
	require.NoError(t, MNISTConflict(dir, train, test, false), "no reader uses it")

	other := tiny(4, 2, 3)
	other.Labels[1]++
	path := filepath.Join(dir, "t10k-labels-idx1-ubyte.gz")
	require.EqualError(t, MNISTConflict(dir, train, other, false), path+" exists with other content: write to another directory, or add --force to replace it")
	require.NoError(t, MNISTConflict(dir, train, other, true))
	for _, test := range []*Images{tiny(3, 2, 3), tiny(5, 2, 3)} { // shorter and longer
		require.ErrorContains(t, MNISTConflict(dir, train, test, false), " exists with other content")
	}
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.ErrorContains(t, MNISTConflict(dir, train, test, false), path)
	require.NoError(t, os.Remove(path))
	require.NoError(t, MNISTConflict(dir, train, test, false), "an interrupted command continues")

	for _, name := range []string{"train-images-idx3-ubyte", "test-labels.idx1-ubyte.gz", "emnist-t10k-images-idx3-ubyte.gz"} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		for _, replace := range []bool{false, true} {
			require.EqualError(t, MNISTConflict(filepath.Dir(path), train, test, replace), path+" exists, so training could not tell which files to read: remove it, or write to another directory")
		}
	}
}

// The same holds for sentences.
func TestSentencesConflict(t *testing.T) {
	o := SentencesOptions{Train: 12, Dev: 3, Seed: 1}
	f, dir := text.Formats()[0], t.TempDir()
	require.NoError(t, WriteSentences(dir, f, o))
	require.NoError(t, SentencesConflict(dir, f, o, false), "nothing would be lost")
	other := o
	other.Seed++
	require.ErrorContains(t, SentencesConflict(dir, f, other, false), "dev"+f.Suffixes[0]+" exists with other content: ")
	require.NoError(t, SentencesConflict(dir, f, other, true))
	for _, format := range text.Formats()[1:] {
		if format.Write != nil {
			require.ErrorContains(t, SentencesConflict(dir, format, o, true), f.Suffixes[0]+" exists, so training could not tell which files to read")
		}
	}
	require.NoError(t, os.Rename(filepath.Join(dir, "dev"+f.Suffixes[0]), filepath.Join(dir, "dev.jsonl.gz")))
	require.ErrorContains(t, SentencesConflict(dir, f, o, false), "dev.jsonl.gz exists, so training")
	file := filepath.Join(dir, "train"+f.Suffixes[0])
	require.NoError(t, SentencesConflict(file, f, o, false), "WriteSentences says that it is no directory")
	require.Error(t, WriteSentences(file, f, o))
}
