package data_test

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/text"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// sentences collects the default kind of sentences.
func sentences(train, dev int, seed uint64) (a, b []*text.Doc) {
	x, y := data.Sentences(data.SentencesOptions{Train: train, Dev: dev, Seed: seed})
	return slices.Collect(x), slices.Collect(y)
}

// name returns the words of an entity.
func name(d *text.Doc, e text.Span) string { return strings.Join(d.Words[e.Start:e.End], " ") }

// gazetteer finds the names of some documents in others, the longest first, with the label
// that each has most often. It returns the F score.
func gazetteer(train, dev []*text.Doc) float64 {
	counts := map[string]map[string]int{}
	longest := 0
	for _, d := range train {
		for _, e := range d.Entities {
			n := name(d, e)
			if counts[n] == nil {
				counts[n] = map[string]int{}
			}
			counts[n][e.Label]++
			longest = max(longest, e.End-e.Start)
		}
	}
	label := func(n string) (best string) {
		for l, c := range counts[n] {
			if c > counts[n][best] || c == counts[n][best] && l < best {
				best = l
			}
		}
		return best
	}
	right, found, gold := 0, 0, 0
	for _, d := range dev {
		gold += len(d.Entities)
		for i := 0; i < d.Len(); i++ {
			for n := min(longest, d.Len()-i); n > 0; n-- {
				s := text.Span{Start: i, End: i + n}
				if s.Label = label(name(d, s)); s.Label != "" {
					found++
					if slices.Contains(d.Entities, s) {
						right++
					}
					i += n - 1
					break
				}
			}
		}
	}
	return 2 * float64(right) / float64(found+gold)
}

// A list of names is far from enough to find the entities of the second part: it misses new
// names, and does not tell the labels of ambiguous ones.
func TestSentencesNeedContext(t *testing.T) {
	for seed := range uint64(3) {
		f := gazetteer(sentences(2000, 500, seed))
		t.Logf("seed %d: the gazetteer has F = %.3f", seed, f)
		assert.Greater(t, f, .5)
		assert.Less(t, f, .75)
	}
}

// About 30 % of the names in the second part are not in the first.
func TestSentencesHaveNewNames(t *testing.T) {
	train, dev := sentences(20000, 500, 1)
	known := map[string]bool{}
	for _, d := range train {
		for _, e := range d.Entities {
			known[name(d, e)] = true
		}
	}
	all, unseen := 0, 0
	for _, d := range dev {
		for _, e := range d.Entities {
			all++
			if !known[name(d, e)] {
				unseen++
			}
		}
	}
	require.InDelta(t, .3, float64(unseen)/float64(all), .03)
}

// Sentences have every shape that formats and taggers must handle.
func TestSentenceShapes(t *testing.T) {
	train, _ := sentences(2000, 0, 0)
	lengths, labels, adjacent, words := map[int]int{}, map[string]int{}, 0, 0
	for _, d := range train {
		require.True(t, d.Annotated)
		require.GreaterOrEqual(t, d.Len(), 10)
		require.LessOrEqual(t, d.Len(), 60)
		require.Equal(t, ".", d.Words[d.Len()-1])
		require.Equal(t, d.Words, text.Tokenize(d.Text()).Words)
		words += d.Len()
		for i, e := range d.Entities {
			lengths[e.End-e.Start]++
			labels[e.Label]++
			if i > 0 && d.Entities[i-1].End == e.Start && d.Entities[i-1].Label == e.Label {
				adjacent++
			}
		}
	}
	for n := 1; n <= 5; n++ {
		require.Positive(t, lengths[n], "entities of %d words", n)
	}
	require.Len(t, lengths, 5)
	require.Len(t, labels, 4)
	for l, n := range labels {
		require.Greater(t, n, 300, l)
	}
	require.Greater(t, adjacent, 20)
	require.InDelta(t, 20, float64(words)/float64(len(train)), 5)
}

// A sentence depends on the seed and its number, not on how many there are.
func TestSentencesAreDeterministic(t *testing.T) {
	a, b := sentences(30, 10, 3)
	c, d := sentences(20, 20, 3)
	require.Equal(t, a[:20], c)
	require.Equal(t, b, d[:10])
	other, _ := sentences(30, 10, 4)
	require.NotEqual(t, a, other)
	require.Equal(t, "People from Gisir and from Letene came to the bragu, although shares of Dedokes fell by 413 percent.", a[0].Text(), "sentences for a seed are part of what a benchmark measures")
}

func TestWriteSentences(t *testing.T) {
	o := data.SentencesOptions{Train: 12, Dev: 3, Seed: 1}
	train, dev := data.Sentences(o)
	for _, f := range text.Formats() {
		dir := filepath.Join(t.TempDir(), "new")
		err := data.WriteSentences(dir, f, o)
		if f.Write == nil {
			require.ErrorContains(t, err, "cannot be written in the format "+f.Name)
			continue
		}
		require.NoError(t, err)
		for part, want := range map[string]iter.Seq[*text.Doc]{"train": train, "dev": dev} {
			path, err := data.FindDocuments(dir, part)
			require.NoError(t, err)
			info, err := data.ScanDocuments(path)
			require.NoError(t, err)
			require.Empty(t, info.Warning)
			got, err := info.Documents(t.Context())
			require.NoError(t, err)
			all := slices.Collect(want)
			require.Len(t, got, len(all))
			for i, d := range all {
				require.Equal(t, d.Words, got[i].Words, f.Name)
				require.Equal(t, d.Entities, got[i].Entities, f.Name)
			}
		}
	}
	dir, written := t.TempDir(), text.Formats()[0]
	require.NoError(t, data.WriteSentences(dir, written, o))
	require.NoError(t, data.WriteSentences(dir, written, o), "again")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, data.WriteSentences(file, text.Formats()[0], o), file)
}
