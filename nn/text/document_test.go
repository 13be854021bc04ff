package text_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/nn/text"
)

// casey is the example of spaCy's oracle.
func casey() *text.Doc {
	return &text.Doc{
		Words:     []string{"Casey", "went", "to", "New", "York", "."},
		Spaces:    []bool{true, true, true, true, false, false},
		Entities:  []text.Span{{Start: 0, End: 1, Label: "PERSON"}, {Start: 3, End: 5, Label: "GPE"}},
		Annotated: true,
	}
}

// tags returns tags as text.
func tags(d *text.Doc) []string { return text.BILUO.Tags(d) }

// anyDoc draws an annotated document, which may have missing words.
func anyDoc(t *rapid.T) *text.Doc {
	d := &text.Doc{Annotated: true}
	for range rapid.IntRange(1, 12).Draw(t, "words") {
		d.Words = append(d.Words, rapid.SampledFrom([]string{"a", "Bé", "ß", ".", "'s", "US$", "|", "“", "x.y", "€", "3", "𝔘n"}).Draw(t, "word"))
		d.Spaces = append(d.Spaces, rapid.Bool().Draw(t, "space"))
	}
	missing := make([]bool, d.Len())
	for at := 0; at < d.Len(); {
		n := rapid.IntRange(1, min(4, d.Len()-at)).Draw(t, "length")
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			missing[at] = true
		case 1, 2:
			d.Entities = append(d.Entities, text.Span{Start: at, End: at + n, Label: rapid.SampledFrom([]string{"PER", "LOC"}).Draw(t, "label")})
		}
		at += n
	}
	if slices.Contains(missing, true) {
		d.Missing = missing
		d.Annotated = slices.Contains(missing, false)
	}
	if !d.Annotated {
		d.Missing = nil
	}
	return d
}

func TestTags(t *testing.T) {
	d := casey()
	require.Equal(t, []string{"U-PERSON", "O", "O", "B-GPE", "L-GPE", "O"}, tags(d))
	d.Missing = []bool{false, true, false, false, false, false}
	require.Equal(t, []string{"U-PERSON", "-", "O", "B-GPE", "L-GPE", "O"}, tags(d))
	d.Entities = []text.Span{{Start: 1, End: 5, Label: "X-Y"}}
	require.Equal(t, []string{"O", "B-X-Y", "I-X-Y", "I-X-Y", "L-X-Y", "O"}, tags(d))
	d.Annotated = false
	require.Equal(t, []string{"-", "-", "-", "-", "-", "-"}, tags(d))
}

// Every scheme tells all entities and missing words.
func TestSchemesKeepEntities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDoc(t)
		for _, scheme := range []text.Scheme{text.BILUO, text.IOBES, text.IOB2, text.IOB1} {
			again := &text.Doc{Words: d.Words, Spaces: d.Spaces}
			var tags []text.Tag
			for _, s := range scheme.Tags(d) {
				tag, err := text.ParseTag(s)
				require.NoError(t, err)
				tags = append(tags, tag)
			}
			again.SetTags(tags)
			require.Equal(t, d, again, "%d", scheme)
		}
	})
}

func TestSchemes(t *testing.T) {
	d := &text.Doc{Words: []string{"a", "b", "c", "d", "e"}, Annotated: true, Entities: []text.Span{{0, 3, "X"}, {3, 4, "X"}, {4, 5, "Y"}}}
	for scheme, want := range map[text.Scheme][]string{
		text.BILUO: {"B-X", "I-X", "L-X", "U-X", "U-Y"},
		text.IOBES: {"B-X", "I-X", "E-X", "S-X", "S-Y"},
		text.IOB2:  {"B-X", "I-X", "I-X", "B-X", "B-Y"},
		text.IOB1:  {"I-X", "I-X", "I-X", "B-X", "I-Y"},
	} {
		require.Equal(t, want, scheme.Tags(d))
	}
}

// Tags that no scheme writes are understood as spaCy understands them.
func TestIrregularTags(t *testing.T) {
	for _, c := range []struct{ tags, want []string }{
		{[]string{"I-X", "I-Y", "L-Y", "O"}, []string{"U-X", "B-Y", "L-Y", "O"}},
		{[]string{"B-X", "L-X", "I-X"}, []string{"B-X", "L-X", "U-X"}},
		{[]string{"U-X", "I-X"}, []string{"U-X", "U-X"}},
		{[]string{"O", "E-X", "S-X"}, []string{"O", "U-X", "U-X"}},
		{[]string{"B-X", "-", "I-X"}, []string{"U-X", "-", "U-X"}},
	} {
		var parsed []text.Tag
		for _, s := range c.tags {
			tag, err := text.ParseTag(s)
			require.NoError(t, err)
			parsed = append(parsed, tag)
		}
		d := &text.Doc{Words: c.tags}
		d.SetTags(parsed)
		require.Equal(t, c.want, tags(d), "%v", c.tags)
	}
}

func TestParseTagMistakes(t *testing.T) {
	for s, want := range map[string]string{"": "must be O", "B": "must be O", "B-": "must be O", "o": "must be O", "X-PER": "must begin with", "-PER": "must begin with", "BB-PER": "must begin with"} {
		_, err := text.ParseTag(s)
		require.ErrorContains(t, err, want, s)
	}
}

func TestTextAndOffsets(t *testing.T) {
	d := casey()
	require.Equal(t, "Casey went to New York.", d.Text())
	require.Equal(t, []text.Range{{0, 5}, {6, 10}, {11, 13}, {14, 17}, {18, 22}, {22, 23}}, d.Offsets())
	d.Spaces = nil
	require.Equal(t, "Casey went to New York .", d.Text())
	require.Equal(t, text.Range{Start: 23, End: 24}, d.Offsets()[5])
	require.Equal(t, []text.Range{{0, 2}, {3, 4}}, (&text.Doc{Words: []string{"né", "𝔘"}}).Offsets(), "code points")
}

func TestTokenize(t *testing.T) {
	for s, want := range map[string][]string{
		"":                                nil,
		"Casey went to New York.":         {"Casey", "went", "to", "New", "York", "."},
		`"Don't", he said (U.S. e-mail).`: {`"`, "Don't", `"`, ",", "he", "said", "(", "U.S", ".", "e-mail", ")", "."},
		"3.14 €, AT&T  x":                 {"3.14", "€", ",", "AT&T", " ", "x"},
		" a\t\n b ":                       {" ", "a", "\t\n ", "b"},
		"né\u0301e a-":                    {"né\u0301e", "a", "-"},
		"東京 1,000":                        {"東京", "1,000"},
	} {
		require.Equal(t, want, text.Tokenize(s).Words, s)
	}
}

// No character is lost, whatever the text.
func FuzzTokenize(f *testing.F) {
	f.Add("a  b\u00a0\xff, don't")
	f.Fuzz(func(t *testing.T, s string) {
		d := text.Tokenize(s)
		require.Equal(t, s, d.Text())
		require.NotContains(t, d.Words, "")
		require.Len(t, d.Spaces, d.Len())
	})
}
