package catalog_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// docsOf returns a dataset of documents.
func docsOf(t *testing.T, d catalog.Dataset, err error) catalog.DocDataset {
	require.NoError(t, err)
	require.Equal(t, "ner.v1", d.Task())
	require.Implements(t, (*catalog.DocDataset)(nil), d)
	return d.(catalog.DocDataset)
}

func TestDocDataset(t *testing.T) {
	dir := put(t, map[string]string{
		"train.iob": "Casey|I-PER went|O to|O New|I-LOC York|I-LOC\na|O\n",
		"dev.jsonl": `{"text": "Casey", "entities": [[0, 2, "PER"]]}` + "\n" + `{"text": "New York", "entities": [[0, 8, "LOC"]]}`,
		"more.txt":  "raw text\n",
	})
	c := catalog.New()
	got, err := c.Data("ner:"+dir, catalog.Options{})
	d := docsOf(t, got, err)
	info := d.Info()
	require.Equal(t, []any{"ner:" + dir, 2, 2}, []any{info.Name, info.Train, info.Test})
	require.Len(t, info.Warnings, 1)
	require.Contains(t, info.Warnings[0], `dev.jsonl:1: the entity [0, 2, "PER"]`)
	require.Equal(t, map[string]int{"PER": 1, "LOC": 2}, d.Labels())
	trainWords, testWords := d.Words()
	require.Equal(t, []int{6, 3}, []int{trainWords, testWords})
	train, test, sum, err := d.Open(t.Context())
	require.NoError(t, err)
	require.Len(t, train, 2)
	require.Len(t, test, 2)
	require.Len(t, sum, 64)

	for _, name := range []string{"ner:" + dir, "ner:" + filepath.Join(dir, "dev.jsonl")} {
		got, err = c.Test(name, true)
		d = docsOf(t, got, err)
		require.Nil(t, d.Labels())
		require.Equal(t, 2, d.Info().Test)
		train, test, other, err := d.Open(t.Context())
		require.NoError(t, err)
		require.Empty(t, train)
		require.Len(t, test, 2)
		require.NotEqual(t, sum, other)
	}
}

func TestDocInput(t *testing.T) {
	dir := put(t, map[string]string{"a.jsonl": `{"text": "one two"}` + "\n" + `{"text": ""}`, "b.conll": "three O\n", "c.txt": "four\n"})
	c := catalog.New()
	for format, in := range map[string]catalog.Input{
		"":    {Files: []string{filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.conll")}},
		"ner": {Files: []string{dir}},
	} {
		got, err := c.Input(format, in)
		d := docsOf(t, got, err)
		require.Len(t, d.Info().Warnings, 1)
		_, docs, _, err := d.Open(t.Context())
		require.NoError(t, err)
		require.Len(t, docs, d.Info().Test)
		require.Equal(t, []string{"one", "two"}, docs[0].Words)
		require.Equal(t, []string{"three"}, docs[1].Words)
	}
	for stream, want := range map[string][]string{`{"text": "a b"}`: {"a", "b"}, "[1] raw": {"[", "1", "]", "raw"}} {
		got, err := c.Input("ner", catalog.Input{Stream: strings.NewReader(stream)})
		_, docs, _, err := docsOf(t, got, err).Open(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, docs[0].Words)
	}
}

func TestDocDataMistakes(t *testing.T) {
	c := catalog.New()
	for want, files := range map[string]map[string]string{
		"has no file called dev.conll":          {"train.iob": "a|I-X"},
		"train.iob has no entities":             {"train.iob": "a|O", "dev.iob": "a|O"},
		"dev.iob:1: the tag must be O":          {"train.iob": "a|I-X", "dev.iob": "a|I"},
		"has both train.conll and train.iob":    {"train.iob": "a|I-X", "train.conll": "a O", "dev.iob": "a|O"},
		"train.spacy: not a DocBin (.spacy): z": {"train.spacy": "{}", "dev.iob": "a|O"},
	} {
		_, err := c.Data("ner:"+put(t, files), catalog.Options{})
		require.ErrorContains(t, err, want)
	}
	_, err := c.Data("ner:", catalog.Options{})
	require.ErrorContains(t, err, `data "ner:" names no directory; write ner:DIR`)
	_, err = c.Test("ner:"+filepath.Join(t.TempDir(), "none"), false)
	require.ErrorContains(t, err, "none")
	_, err = c.Input("ner", catalog.Input{Stream: strings.NewReader("\n")})
	require.ErrorContains(t, err, "stdin: has no documents")
	_, err = c.Input("ner", catalog.Input{Stream: strings.NewReader("{\n")})
	require.ErrorContains(t, err, "stdin:1: not a document as JSON")
	_, err = c.Input("ner", catalog.Input{Files: []string{filepath.Join(put(t, map[string]string{"x.md": "a"}), "x.md")}})
	require.ErrorContains(t, err, "the name x.md does not tell its format")
}
