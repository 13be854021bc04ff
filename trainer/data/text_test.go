package data_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// written returns the path of a file with this text.
func written(t testing.TB, text string) string {
	path := filepath.Join(t.TempDir(), "text.txt")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestVocabulary(t *testing.T) {
	v, err := data.NewVocabulary([]rune("né\nabc€"))
	require.NoError(t, err)
	require.Equal(t, 8, v.Len())
	require.Equal(t, "a,61-63,6e,e9,20ac", v.String())
	require.Equal(t, []int32{1, 2, 7, data.Unknown}, []int32{v.ID('\n'), v.ID('a'), v.ID('€'), v.ID('z')})
	for id := range int32(7) {
		require.Equal(t, id+1, v.ID(v.Char(id+1)))
	}
}

func TestVocabularyMistakes(t *testing.T) {
	for want, chars := range map[string][]rune{
		"not 0":                   {},
		"not a Unicode character": {'a', 0xd800},
		"1 of 3 characters of a vocabulary occur twice": {'a', 'b', 'a'},
		"not 65537": slices.Collect(func(yield func(rune) bool) {
			for c := range rune(data.MaxVocabulary + 1) {
				if !yield(0x10000 + c) {
					return
				}
			}
		}),
	} {
		_, err := data.NewVocabulary(chars)
		require.ErrorContains(t, err, want)
	}
	for _, text := range []string{"", "a,", "-", "x", "-a", "7a-61", "61-", "0-1ffff", "61,61", "d800", "110000", "61-7a,70"} {
		_, err := data.ParseVocabulary(text)
		require.Error(t, err, text)
	}
}

func FuzzParseVocabulary(f *testing.F) {
	for _, text := range []string{"a,20-7e", "0-ffff,10000-1ffff", "61-7a,", "d7ff-e000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := data.ParseVocabulary(text)
		if err != nil {
			return
		}
		again, err := data.ParseVocabulary(v.String())
		require.NoError(t, err)
		require.Equal(t, v, again)
	})
}

// Every character of a text but the first is a label once, the character before it is its
// input, and characters after the last whole row are left out.
func TestTextRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := &data.Text{Context: rapid.IntRange(1, 9).Draw(t, "context"), IDs: rapid.SliceOf(rapid.Int32()).Draw(t, "ids")}
		rows := data.Range(nil, 0, text.Rows())
		n := len(rows) * text.Context
		require.Equal(t, n, max(len(text.IDs)-1, 0)/text.Context*text.Context)
		x, labels := make([]int32, n+1), make([]int32, n+1)
		require.NoError(t, text.Gather(rows, x, labels))
		if n > 0 {
			require.Equal(t, text.IDs[:n], x[:n])
			require.Equal(t, text.IDs[1:n+1], labels[:n])
		}
		require.ErrorContains(t, text.Gather([]int32{int32(len(rows))}, make([]int32, 9), make([]int32, 9)), "there is no row")
		require.ErrorContains(t, text.Gather([]int32{0}, x[:0], labels), "there is room for 0")
	})
}

func TestScanText(t *testing.T) {
	const text = "häß\r\nhallo €"
	info, err := data.ScanText(written(t, text))
	require.NoError(t, err)
	require.Equal(t, 12, info.Chars)
	v, err := info.Vocabulary(10) // without the blank and the €
	require.NoError(t, err)
	require.Equal(t, "a,d,61,68,6c,6f,df,e4", v.String())
	ids, err := info.IDs(t.Context(), v)
	require.NoError(t, err)
	for i, c := range []rune(text) {
		require.Equal(t, v.ID(c), ids[i])
	}
	require.Equal(t, []int32{data.Unknown, data.Unknown}, ids[10:])
	require.NoError(t, os.WriteFile(info.Path, []byte("other"), 0o600))
	_, err = info.IDs(t.Context(), v)
	require.ErrorContains(t, err, "has changed while it was in use")
}

// A byte order mark is no character, except in the middle.
func TestByteOrderMark(t *testing.T) {
	const text = "\ufeffab\ufeff"
	info, err := data.ScanText(written(t, text))
	require.NoError(t, err)
	require.Equal(t, 3, info.Chars)
	chars, err := data.ReadChars(strings.NewReader(text))
	require.NoError(t, err)
	require.Equal(t, []rune("ab\ufeff"), chars)
}

func TestScanTextMistakes(t *testing.T) {
	many := &strings.Builder{}
	for c := range rune(data.MaxVocabulary + 1) {
		many.WriteRune(0x10000 + c)
	}
	for want, text := range map[string]string{
		": not UTF-8: the byte at offset 3 is not part of": "ä.\xff",
		"the byte at offset 70001":                         strings.Repeat("a", 70_001) + "\xe2\x82",
		"the byte at offset 0":                             "\xed\xa0\x80", // half of a pair of UTF-16
	} {
		_, err := data.ScanText(written(t, text))
		require.ErrorContains(t, err, want)
	}
	_, err := data.ScanText(t.TempDir())
	require.ErrorContains(t, err, "is a directory: name a file in it")
	_, err = data.ScanText(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	info, err := data.ScanText(written(t, many.String()))
	require.NoError(t, err)
	_, err = info.Vocabulary(info.Chars)
	require.ErrorContains(t, err, "has 65537 different characters, more than the 65536")
	_, err = info.Vocabulary(info.Chars - 1)
	require.NoError(t, err)
	replacement, err := data.ScanText(written(t, "a\ufffdb")) // itself a character
	require.NoError(t, err)
	require.Equal(t, 3, replacement.Chars)
}

// A Feed, a Feed to memory that the host cannot write to, and a Resident have the same
// batches.
func TestTextBatches(t *testing.T) {
	const rows, each = 23, 5
	text := &data.Text{Context: each, IDs: make([]int32, rows*each+3)}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range text.IDs {
		text.IDs[i] = random.Int32()
	}
	b := cpu.New(cpu.Options{})
	defer b.Close()
	var samplers [3]*data.Sampler
	for i := range samplers {
		var err error
		samplers[i], err = data.NewSampler(rows, 4, 1, 2, 9)
		require.NoError(t, err)
	}
	feed, resident := data.NewFeed(text.Stage(4, b), samplers[0]), text.Resident(4, samplers[1], b)
	far := data.NewFeed(text.Stage(4, remote{b}), samplers[2])
	pace := b.NewPace(nn.PaceConfig{Hyper: func(int) (h [nn.HyperLen]float32) { return h }})
	for step, placed := 0, 0; step < 9; step++ {
		if step == placed {
			first, steps := resident.Seek(step)
			pace.Seek(step, first)
			placed += steps
		}
		want, err := feed.Batch(step)
		require.NoError(t, err)
		mine, _ := resident.Rows(step)
		got := resident.Gather(pace, mine)
		require.Equal(t, []int{mine, each}, want.X.Shape)
		require.Equal(t, want.X.Shape, got.X.Shape)
		require.Equal(t, want.X.Data.Int32s(), got.X.Data.Int32s(), "step %d", step)
		require.Equal(t, want.Labels.Int32s(), got.Labels.Int32s(), "step %d", step)
		pace.Tick(b.Alloc(1), mine)
		distant, err := far.Batch(step)
		require.NoError(t, err)
		require.Equal(t, []int{mine * each, mine * each}, []int{distant.X.Data.Len(), distant.Labels.Len()})
	}
}
