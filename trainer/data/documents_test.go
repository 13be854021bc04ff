package data_test

import (
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/text"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// corpus writes a file into a new directory.
func corpus(t *testing.T, name, content string) (path string) {
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestScanDocuments(t *testing.T) {
	path := corpus(t, "train.iob", "a|B-X b|I-X c|O d|B-Y\ne|O\n")
	info, err := data.ScanDocuments(path)
	require.NoError(t, err)
	require.Equal(t, []any{2, 5, map[string]int{"X": 2, "Y": 1}, ""}, []any{info.Docs, info.Words, info.Labels, info.Warning})
	docs, err := info.Documents(t.Context())
	require.NoError(t, err)
	require.Len(t, docs, 2)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = info.Documents(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, os.WriteFile(path, []byte("a|O\n"), 0o600))
	_, err = info.Documents(t.Context())
	require.ErrorContains(t, err, "has changed while it was in use")
}

func TestScanCompressedDocuments(t *testing.T) {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte("a|B-X\n"))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	info, err := data.ScanDocuments(corpus(t, "dev.iob.gz", b.String()))
	require.NoError(t, err)
	require.Equal(t, 1, info.Docs)
	_, err = data.ScanDocuments(corpus(t, "dev.iob.gz", b.String()[:b.Len()-4]))
	require.ErrorContains(t, err, "dev.iob.gz:")
}

// Mistakes after which training can continue are counted, and the first is shown.
func TestDocumentWarnings(t *testing.T) {
	info, err := data.ScanDocuments(corpus(t, "dev.jsonl", `{"text": "ab", "entities": [[0, 1, "X"]]}
{"text": ""}
{"text": "ab"}
`))
	require.NoError(t, err)
	require.Equal(t, 2, info.Docs)
	require.Contains(t, info.Warning, `dev.jsonl:1: the entity [0, 1, "X"]`)
	require.Contains(t, info.Warning, " (2 warnings in all)")
	f, err := text.FormatOf("x.jsonl")
	require.NoError(t, err)
	docs, warning, err := data.ReadDocuments(strings.NewReader("{\"text\": \"\"}\n{\"text\": \"a\"}"), "in", f)
	require.NoError(t, err)
	require.Len(t, docs, 1)
	require.Equal(t, "in:1: the text is empty; the line is left out", warning)
}

func TestDocumentMistakes(t *testing.T) {
	for want, path := range map[string]string{
		"does not tell its format":          corpus(t, "train.csv", ""),
		"train.iob has no documents":        corpus(t, "train.iob", "\n"),
		"train.conll:1: the tag must be O":  corpus(t, "train.conll", "a X\n"),
		"no such file":                      filepath.Join(t.TempDir(), "train.iob"),
		"is a directory: name a file in it": filepath.Join(t.TempDir(), "dir.iob"),
	} {
		if strings.HasSuffix(path, "dir.iob") {
			require.NoError(t, os.Mkdir(path, 0o700))
		}
		_, err := data.ScanDocuments(path)
		require.ErrorContains(t, err, want)
	}
	_, _, err := data.ReadDocuments(strings.NewReader("a X\n"), "in", text.Formats()[0])
	require.ErrorContains(t, err, "in:1: ")
}

func TestFindDocuments(t *testing.T) {
	path := corpus(t, "train.jsonl.gz", "")
	dir := filepath.Dir(path)
	for _, other := range []string{"train.log", "train.txt", "trained.iob"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, other), nil, 0o600))
	}
	found, err := data.FindDocuments(dir, "train")
	require.NoError(t, err)
	require.Equal(t, path, found)
	_, err = data.FindDocuments(dir, "dev")
	require.ErrorContains(t, err, "has no file called dev.conll, dev.iob, dev.jsonl or dev.spacy")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.iob"), nil, 0o600))
	_, err = data.FindDocuments(dir, "train")
	require.ErrorContains(t, err, dir+" has both train.iob and train.jsonl.gz")
	_, err = data.FindDocuments(path, "train")
	require.ErrorContains(t, err, "is a file, not a directory")
}
