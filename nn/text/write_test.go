package text_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/nn/text"
)

// written returns documents in a format.
func written(t require.TestingT, format string, docs ...*text.Doc) string {
	f, err := text.FormatOf("x." + format)
	require.NoError(t, err)
	var b strings.Builder
	for _, d := range docs {
		require.NoError(t, f.Write(&b, d))
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	for format, want := range map[string]string{
		"conll": "Casey B-PERSON\nwent O\nto O\nNew B-GPE\nYork I-GPE\n. O\n\n",
		"iob":   "Casey|-|I-PERSON went|-|O to|-|O New|-|I-GPE York|-|I-GPE .|-|O\n",
		"jsonl": `{"text":"Casey went to New York.","entities":[[0,5,"PERSON"],[14,22,"GPE"]]}` + "\n",
	} {
		require.Equal(t, want, written(t, format, casey()))
	}
	require.Equal(t, `{"text":"a <b>"}`+"\n", written(t, "jsonl", text.Tokenize("a <b>")))
	require.Equal(t, `{"text":"a.","entities":[],"tokens":[{"start":0,"end":2}]}`+"\n", written(t, "jsonl", &text.Doc{Words: []string{"a."}, Annotated: true}))
}

// What is written is read again. Columns have no spaces, and JSON has no missing words.
func TestWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDoc(t)
		for _, format := range []string{"conll", "iob", "jsonl"} {
			want := *d
			if format == "jsonl" {
				want.Missing = nil
			} else {
				want.Spaces = nil
			}
			f, err := text.FormatOf("x." + format)
			require.NoError(t, err)
			n := 0
			for got, err := range f.Read(strings.NewReader(written(t, format, d, d)), text.Options{}) {
				require.NoError(t, err)
				require.Equal(t, &want, got, format)
				n++
			}
			require.Equal(t, 2, n)
		}
	})
}

func TestWriteMistakes(t *testing.T) {
	entity := []text.Span{{Start: 0, End: 1, Label: "A B"}}
	for _, c := range []struct {
		format string
		d      *text.Doc
		want   string
	}{
		{"conll", &text.Doc{Words: []string{"a b"}}, `the word "a b"`},
		{"conll", &text.Doc{Words: []string{""}}, "is empty or has white space"},
		{"conll", &text.Doc{Words: []string{"a"}, Entities: entity, Annotated: true}, `the tag "B-A B"`},
		{"conll", &text.Doc{Words: []string{"-DOCSTART-"}}, "begins a document"},
		{"iob", &text.Doc{Words: []string{"\n"}}, "white space"},
		{"iob", &text.Doc{Words: []string{"a"}, Entities: []text.Span{{0, 1, "A|B"}}, Annotated: true}, "has a bar"},
	} {
		f, err := text.FormatOf("x." + c.format)
		require.NoError(t, err)
		require.ErrorContains(t, f.Write(&strings.Builder{}, c.d), c.want)
	}
}
