package text_test

import (
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/text"
)

// all reads every document, and returns warnings as text.
func all(docs func(o text.Options) iter.Seq2[*text.Doc, error], o text.Options) (got []*text.Doc, warnings []string, err error) {
	o.Name, o.Warn = "file", func(w error) { warnings = append(warnings, w.Error()) }
	for d, err := range docs(o) {
		if err != nil {
			return got, warnings, err
		}
		got = append(got, d)
	}
	return got, warnings, nil
}

// read reads a corpus in the named format.
func read(t testing.TB, format, corpus string, o text.Options) ([]*text.Doc, []string, error) {
	f, err := text.FormatOf("x." + format)
	require.NoError(t, err)
	return all(func(o text.Options) iter.Seq2[*text.Doc, error] { return f.Read(strings.NewReader(corpus), o) }, o)
}

// lines returns documents as lines of word/TAG.
func lines(docs []*text.Doc) (out []string) {
	for _, d := range docs {
		var words []string
		for i, tag := range tags(d) {
			words = append(words, d.Words[i]+"/"+tag)
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

func TestReadCoNLL(t *testing.T) {
	const corpus = "\ufeff-DOCSTART- -X- O O\r\n\r\nEU NNP B-NP I-ORG\r\nrejects VBZ B-VP O\r\n\r\n\r\nNew NNP I-NP I-LOC\r\nYork NNP I-NP I-LOC\r\n\r\n" +
		"-DOCSTART- -X- -X- O\n\nPeter\tI-PER\nBlack\tI-PER\n\nBlack\tI-PER"
	got, _, err := read(t, "conll", corpus, text.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"EU/U-ORG rejects/O New/B-LOC York/L-LOC", "Peter/B-PER Black/L-PER Black/U-PER"}, lines(got), "no entity is in two sentences")
	require.Nil(t, got[0].Spaces)
	require.True(t, got[0].Annotated)

	const plain = "a O\n\nb B-X\n\n \nc -\n\n"
	for sentences, want := range map[int][]string{0: {"a/O", "b/U-X", "c/-"}, 2: {"a/O b/U-X", "c/-"}, 5: {"a/O b/U-X c/-"}} {
		got, _, err = read(t, "conll", plain, text.Options{Sentences: sentences})
		require.NoError(t, err)
		require.Equal(t, want, lines(got))
	}
}

func TestReadIOB(t *testing.T) {
	const corpus = "Le|DET|O Monde|NNP|I-ORG ||SYM|O a|b|X|B-LOC\n\nI|O like|O New|B-GPE York|I-GPE\n"
	got, _, err := read(t, "iob", corpus, text.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"Le/O Monde/U-ORG |/O a|b/U-LOC", "I/O like/O New/B-GPE York/L-GPE"}, lines(got))
	got, _, err = read(t, "iob", corpus, text.Options{Sentences: 2})
	require.NoError(t, err)
	require.Len(t, got, 1)
}

func TestReadJSONL(t *testing.T) {
	const corpus = `{"text": "Casey went to New York.", "entities": [[14, 22, "GPE"], [0, 5, "PERSON"]], "other": {"a": []}}
{"text": "née 𝔘 London", "spans": [{"start": 6, "end": 12, "label": "LOC", "token_start": 2}], "answer": "accept"}

["In London", {"entities": [[3, 9, "LOC"]]}]
{"text": "rejected", "spans": [], "answer": "reject"}
{"text": "raw text"}
{"text": "none here", "entities": []}
{"text": "x  y.z", "tokens": [{"start": 0, "end": 1}, {"start": 3, "end": 4}, {"start": 4, "end": 6}], "spans": [{"start": 3, "end": 4, "label": "A"}]}
`
	got, warnings, err := read(t, "jsonl", corpus, text.Options{})
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, []string{
		"Casey/U-PERSON went/O to/O New/B-GPE York/L-GPE ./O", "née/O 𝔘/O London/U-LOC", "In/O London/U-LOC",
		"raw/- text/-", "none/O here/O", "x/O  /O y/U-A .z/O",
	}, lines(got))
	require.Equal(t, "x  y.z", got[5].Text())
}

// Training can continue after entities that do not fit words: their words are missing.
func TestReadJSONLWarnings(t *testing.T) {
	got, warnings, err := read(t, "jsonl", `{"text": "New York City, N.Y. x", "entities": [[0, 8, "A"], [4, 13, "B"], [1, 3, "C"], [15, 17, "D"], [13, 15, "E"], [20, 21, "F"]]}
{"text": "", "entities": []}
{"text": "an Apple ", "entities": [[3, 9, "ORG"], [8, 9, "ORG"]]}
`, text.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"New/B-A York/L-A City/- ,/- N.Y/- ./O x/U-F", "an/O Apple/-"}, lines(got))
	require.Equal(t, []string{
		`file:1: the entity [1, 3, "C"] does not begin and end with words, or overlaps another; its words count as missing`,
		`file:1: the entity [4, 13, "B"] does not begin and end with words, or overlaps another; its words count as missing`,
		`file:1: the entity [13, 15, "E"] does not begin and end with words, or overlaps another; its words count as missing`,
		`file:1: the entity [15, 17, "D"] does not begin and end with words, or overlaps another; its words count as missing`,
		`file:2: the text is empty; the line is left out`,
		`file:3: the entity [3, 9, "ORG"] does not begin and end with words, or overlaps another; its words count as missing`,
		`file:3: the entity [8, 9, "ORG"] does not begin and end with words, or overlaps another; its words count as missing`,
	}, warnings)
}

func TestReadPlain(t *testing.T) {
	got, _, err := read(t, "txt", "\n Mr X,\r\n\t\nend", text.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{" /- Mr/- X/- ,/-", "end/-"}, lines(got))
	require.False(t, got[0].Annotated)
}

// A mistake is an error that names file, line and reason. What comes before it is read.
func TestMistakes(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct{ format, corpus, want string }{
		{"conll", "a O\nb\n", `file:2: the line has only one column, "b"`},
		{"conll", "a O\nb X-PER\n", `file:2: the tag "X-PER" must begin with`},
		{"conll", "a O\n\nb B-\n", `file:3: the tag must be O`},
		{"conll", "a O\nb\xff O\n", "file:2: the line is not UTF-8"},
		{"conll", "a O\n" + long + " O\n", "file:2: the line has more than 65536 bytes"},
		{"iob", "a|O\nb|X|O c|O\n", `file:2: "c|O" must be word|tag or word|part of speech|tag`},
		{"iob", "a O\n", `file:1: "a" must be word|tag`},
		{"iob", "|O\n", `file:1: "|O" must be word|tag`},
		{"iob", "a|Q\n", `file:1: the tag must be O`},
		{"iob", "\xc0|O\n", "file:1: the line is not UTF-8"},
		{"iob", strings.Repeat(long, 17), "file:1: the line has more than 16777216 bytes"},
		{"jsonl", "{\"text\": \"a\"}\n{\"text\": ", "file:2: not a document as JSON: unexpected end"},
		{"jsonl", "{\"entities\": []}", `file:1: not a document as JSON: there is no "text"`},
		{"jsonl", "[\"a\"]", "file:1: not a document as JSON: a list must hold a text and its annotation, not 1 values"},
		{"jsonl", "{\"text\": 3}", `file:1: not a document as JSON: "text" must be a string, not number`},
		{"jsonl", "5", "file:1: not a document as JSON: the line must be an object, not number"},
		{"jsonl", "{\"text\": \"a\", \"tokens\": {}}", `file:1: not a document as JSON: "tokens" must be a list, not object`},
		{"jsonl", "{\"text\": \"a\", \"entities\": [[0.5, 1, \"X\"]]}", `file:1: not a document as JSON: "entities" must be an integer, not number 0.5`},
		{"jsonl", "{\"text\": \"a\", \"entities\": [[0, 1]]}", "file:1: not a document as JSON: an entity must be [start, end, label], not 2 values"},
		{"jsonl", "{\"text\": \"a\", \"entities\": [[0, 2, \"X\"]]}", `file:1: the entity [0, 2, "X"] must be within the 1 characters of the text`},
		{"jsonl", "{\"text\": \"a\", \"entities\": [[-1, 1, \"X\"]]}", `file:1: the entity [-1, 1, "X"] must be within`},
		{"jsonl", "{\"text\": \"a\", \"entities\": [[1, 1, \"X\"]]}", `file:1: the entity [1, 1, "X"] must be within`},
		{"jsonl", "{\"text\": \"a\", \"entities\": [[0, 1, \"\"]]}", "file:1: an entity has no label"},
		{"jsonl", "{\"text\": \"a b\", \"tokens\": [{\"start\": 0, \"end\": 1}]}", `file:1: " b" belongs to no token`},
		{"jsonl", "{\"text\": \"a b\", \"tokens\": [{\"start\": 0, \"end\": 4}]}", "file:1: the token [0, 4] must be after"},
		{"jsonl", "{\"text\": \"a b\", \"tokens\": [{\"start\": 1, \"end\": 2}, {\"start\": 0, \"end\": 1}]}", `file:1: "a" belongs to no token`},
		{"jsonl", "{\"text\": \"\xff\"}", "file:1: the line is not UTF-8"},
		{"txt", "a\nb\xff", "file:2: the line is not UTF-8"},
	} {
		_, _, err := read(t, c.format, c.corpus, text.Options{})
		require.ErrorContains(t, err, c.want, "%s %.80q", c.format, c.corpus)
		require.NotContains(t, err.Error(), "\n")
	}
}

// A long line is a document like others.
func TestLongLines(t *testing.T) {
	words := strings.Repeat("word ", 200_000)
	got, _, err := read(t, "jsonl", `{"text": "`+words+`", "entities": [[0, 4, "X"]]}`, text.Options{})
	require.NoError(t, err)
	require.Equal(t, 200_000, got[0].Len())
	got, _, err = read(t, "iob", strings.Repeat("word|O ", 200_000), text.Options{})
	require.NoError(t, err)
	require.Equal(t, 200_000, got[0].Len())
}

// Errors of the reader come after the documents before them, and name the file.
func TestReadErrors(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, f := range text.Formats() {
		_, _, err := all(func(o text.Options) iter.Seq2[*text.Doc, error] { return f.Read(iotest.ErrReader(broken), o) }, text.Options{})
		require.ErrorIs(t, err, broken, f.Name)
		require.ErrorContains(t, err, "file", f.Name)
	}
}

// A consumer that stops is not called again.
func TestReadingStops(t *testing.T) {
	for _, c := range []struct{ format, corpus string }{
		{"conll", "a O\n\nb O\n\nc"}, {"conll", "-DOCSTART- O\na O\n-DOCSTART- O\nb O\n"}, {"iob", "a|O\nb|O"}, {"jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\"}"}, {"txt", "a\nb"},
	} {
		f, err := text.FormatOf("x." + c.format)
		require.NoError(t, err)
		for d, err := range f.Read(strings.NewReader(c.corpus), text.Options{}) {
			require.NoError(t, err)
			require.Equal(t, []string{"a"}, d.Words)
			break
		}
	}
}

func TestFormatOf(t *testing.T) {
	for name, want := range map[string]string{"a/train.conll": "conll", "x.IOB.gz": "iob", "d.jsonl": "jsonl", "d.spacy": "spacy", "d.txt": "txt", "d.iob2": "conll"} {
		f, err := text.FormatOf(name)
		require.NoError(t, err)
		require.Equal(t, want, f.Name)
	}
	_, err := text.FormatOf("train.csv")
	require.ErrorContains(t, err, "the name train.csv does not tell its format; it must end in one of .conll, ")
}
