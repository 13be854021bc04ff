package text

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fourAttrs are those of spaCy's default.cfg.
var fourAttrs = []Attr{Norm, Prefix, Suffix, Shape}

// Known words have the ids of new ones, also after others have been forgotten.
func TestLexemes(t *testing.T) {
	l := NewLexemes(fourAttrs)
	l.limit = 3
	for i := range 50 {
		words := []string{fmt.Sprint("word", i%5), strings.Repeat("w", 20*(i%4)), "the"}
		got := l.Append([]uint64{7}, words)
		want := []uint64{7}
		for _, w := range words {
			for _, a := range fourAttrs {
				want = append(want, StringID(a.Of(w)))
			}
		}
		require.Equal(t, want, got)
		require.LessOrEqual(t, len(l.known), 3)
		require.LessOrEqual(t, len(l.ids), 3*len(fourAttrs))
	}
}

func TestKnownWordsAllocateNothing(t *testing.T) {
	l, words := NewLexemes(fourAttrs), []string{"Casey", "went", "to", "New", "York", "."}
	ids := l.Append(nil, words)
	require.Zero(t, testing.AllocsPerRun(10, func() { ids = l.Append(ids[:0], words) }))
}

func ExampleLexemes() {
	l := NewLexemes([]Attr{Norm, Shape})
	fmt.Println(l.Append(nil, []string{"Coffee"}))
	fmt.Println(StringID("coffee"), StringID("Xxxxx"))
	// Output:
	// [3197928453018144401 16072095006890171862]
	// 3197928453018144401 16072095006890171862
}

func BenchmarkLexemes(b *testing.B) {
	l, words := NewLexemes(fourAttrs), strings.Fields(strings.Repeat("Casey went to New York on Monday . ", 20))
	var ids []uint64
	b.ReportAllocs()
	for b.Loop() {
		ids = l.Append(ids[:0], words)
	}
}
