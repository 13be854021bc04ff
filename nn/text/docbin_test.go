package text_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/ringtrain/ringtrain/nn/text"
)

// goldenDocBin is written by testdata/docbin/make.py, which also writes what spaCy reads
// in it, as JSON.
const goldenDocBin = "testdata/docbin/golden.spacy"

func inflated(t testing.TB, b []byte) []byte {
	z, err := zlib.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	raw, err := io.ReadAll(z)
	require.NoError(t, err)
	return raw
}

func deflated(t testing.TB, raw string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, err := io.WriteString(z, raw)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.String()
}

// A DocBin that spaCy wrote has the words, spaces and tags that spaCy finds in it.
func TestDocBinOfSpaCy(t *testing.T) {
	golden, err := os.ReadFile(goldenDocBin)
	require.NoError(t, err)
	docs, warnings, err := read(t, "spacy", string(golden), text.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"file: 1 of 7 documents have no words; they are left out"}, warnings)
	var want []struct {
		Words  []string
		Spaces []bool
		Tags   []string
		Text   string
	}
	content, err := os.ReadFile("testdata/docbin/golden.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &want))
	require.Len(t, docs, len(want))
	for i, d := range docs {
		require.Equal(t, want[i].Words, d.Words)
		require.Equal(t, want[i].Tags, tags(d))
		if want[i].Spaces == nil {
			require.Nil(t, d.Spaces)
			continue
		}
		require.Equal(t, want[i].Spaces, d.Spaces)
		require.Equal(t, want[i].Text, d.Text())
	}
}

// bin is a DocBin of one document, "a London", in parts that tests change.
type bin struct {
	version string
	attrs   []uint64
	tokens  []uint64
	spaces  []byte
	lengths []int32
	strings []string
}

func newBin() bin {
	return bin{
		version: "0.1", attrs: []uint64{65, 77, 78},
		tokens: []uint64{text.StringID("a"), 2, 0, text.StringID("London"), 3, text.StringID("LOC")},
		spaces: []byte{1, 0}, lengths: []int32{2}, strings: []string{"a", "London", "LOC", ""},
	}
}

// raw returns the DocBin before compression.
func (b bin) raw() string {
	out := msgp.AppendMapHeader(nil, 6)
	out = msgp.AppendString(msgp.AppendString(out, "version"), b.version)
	out = msgp.AppendArrayHeader(msgp.AppendString(out, "attrs"), uint32(len(b.attrs)))
	for _, a := range b.attrs {
		out = msgp.AppendUint64(out, a)
	}
	var tokens, lengths []byte
	for _, v := range b.tokens {
		tokens = binary.LittleEndian.AppendUint64(tokens, v)
	}
	for _, n := range b.lengths {
		lengths = binary.LittleEndian.AppendUint32(lengths, uint32(n))
	}
	out = msgp.AppendBytes(msgp.AppendString(out, "tokens"), tokens)
	out = msgp.AppendBytes(msgp.AppendString(out, "spaces"), b.spaces)
	out = msgp.AppendBytes(msgp.AppendString(out, "lengths"), lengths)
	out = msgp.AppendArrayHeader(msgp.AppendString(out, "strings"), uint32(len(b.strings)))
	for _, s := range b.strings {
		out = msgp.AppendString(out, s)
	}
	return string(out)
}

func TestDocBin(t *testing.T) {
	docs, _, err := read(t, "spacy", deflated(t, newBin().raw()), text.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"a/O London/U-LOC"}, lines(docs))
	require.Equal(t, []bool{true, false}, docs[0].Spaces)

	b := newBin()
	b.attrs, b.tokens = []uint64{65}, []uint64{b.tokens[0], b.tokens[3]}
	docs, _, err = read(t, "spacy", deflated(t, b.raw()), text.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"a/- London/-"}, lines(docs), "without attributes of entities")

	b = newBin()
	b.tokens[5] = 0
	docs, _, err = read(t, "spacy", deflated(t, b.raw()), text.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"a/O London/O"}, lines(docs), "a blocked word")
}

func TestDocBinMistakes(t *testing.T) {
	golden, err := os.ReadFile(goldenDocBin)
	require.NoError(t, err)
	_, _, err = read(t, "spacy", string(golden[:len(golden)/2]), text.Options{})
	require.EqualError(t, err, "file: the file is incomplete: its compressed data ends early")
	_, _, err = read(t, "spacy", "{}", text.Options{})
	require.ErrorContains(t, err, "file: not a DocBin (.spacy): zlib: invalid header")
	damaged := bytes.Clone(golden)
	damaged[len(damaged)-1] ^= 1
	_, _, err = read(t, "spacy", string(damaged), text.Options{})
	require.ErrorContains(t, err, "file: the file is damaged: zlib: invalid checksum")
	raw := newBin().raw()
	_, _, err = read(t, "spacy", deflated(t, raw[:len(raw)-3]), text.Options{})
	require.ErrorContains(t, err, `file: not a DocBin of version 0.1: "strings": `)
	for want, change := range map[string]func(b *bin){
		`the version is "0.2"`:                      func(b *bin) { b.version = "0.2" },
		"the attribute ORTH is not stored":          func(b *bin) { b.attrs[0] = 66 },
		"there are 48 bytes of words and 2 of spac": func(b *bin) { b.attrs = append(make([]uint64, 255), 65) },
		`"attrs": there are more than 256 attribut`: func(b *bin) { b.attrs = append(make([]uint64, 256), 65) },
		"the documents have 3 words":                func(b *bin) { b.lengths[0] = 3 },
		"document 1 has -2 words":                   func(b *bin) { b.lengths[0] = -2 },
		"there are 48 bytes of words and 1 of spac": func(b *bin) { b.spaces = b.spaces[:1] },
		"document 1: word 2: no string has the":     func(b *bin) { b.tokens[3] = 1 << 60 },
		`word 2, "London": no string has the hash`:  func(b *bin) { b.tokens[5] = 1 << 60 },
		"ENT_IOB must be from 0 to 3, not 9":        func(b *bin) { b.tokens[4] = 9 },
		`"strings": "\xff" is not UTF-8`:            func(b *bin) { b.strings[0] = "\xff" },
	} {
		b := newBin()
		change(&b)
		_, _, err := read(t, "spacy", deflated(t, b.raw()), text.Options{})
		require.ErrorContains(t, err, want)
		require.True(t, strings.HasPrefix(err.Error(), "file: "))
	}
}
