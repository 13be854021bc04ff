package text_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/text"
)

// fuzzed reads what may be a corpus: whatever the bytes are, documents are sound and
// errors are one line.
func fuzzed(t *testing.T, format, corpus string) {
	docs, warnings, err := read(t, format, corpus, text.Options{})
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	for _, w := range warnings {
		require.True(t, strings.HasPrefix(w, "file:"), w)
		require.NotContains(t, w, "\n")
	}
	for _, d := range docs {
		require.NotEmpty(t, d.Words)
		require.NotContains(t, d.Words, "")
		require.True(t, d.Spaces == nil || len(d.Spaces) == d.Len())
		end := 0
		for _, e := range d.Entities {
			require.True(t, e.Start >= end && e.End > e.Start && e.End <= d.Len() && e.Label != "")
			end = e.End
		}
		again := &text.Doc{Words: d.Words, Spaces: d.Spaces}
		again.SetTags(d.Tags())
		require.Equal(t, d.Entities, again.Entities)
		require.Equal(t, d.Annotated, again.Annotated)
	}
}

func FuzzReadCoNLL(f *testing.F) {
	f.Add("-DOCSTART- -X- O O\n\nEU NNP B-NP I-ORG\r\na O\n\nb -\n")
	f.Fuzz(func(t *testing.T, corpus string) { fuzzed(t, "conll", corpus) })
}

func FuzzReadIOB(f *testing.F) {
	f.Add("Le|DET|O ||SYM|I-ORG\na|B-X b|L-X\n")
	f.Fuzz(func(t *testing.T, corpus string) { fuzzed(t, "iob", corpus) })
}

func FuzzReadJSONL(f *testing.F) {
	f.Add(`{"text": "a b.c", "entities": [[0, 1, "X"], [2, 4, "Y"]]}`)
	f.Add(`{"text": "Apple ", "entities": [[0, 6, "ORG"], [5, 6, "ORG"]]}`)
	f.Add(`["né", {"spans": [{"start": 0, "end": 2, "label": "X"}], "tokens": [{"start": 0, "end": 1}, {"start": 1, "end": 2}]}]`)
	f.Fuzz(func(t *testing.T, corpus string) { fuzzed(t, "jsonl", corpus) })
}

func FuzzReadDocBin(f *testing.F) {
	golden, err := os.ReadFile(goldenDocBin)
	require.NoError(f, err)
	f.Add(string(inflated(f, golden)))
	// Fuzzing what is inside zlib: no mutation of compressed bytes passes its checksum.
	f.Fuzz(func(t *testing.T, raw string) { fuzzed(t, "spacy", deflated(t, raw)) })
}
