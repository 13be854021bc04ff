package data

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Documents become the batches of spaCy's minibatch_by_words.
func TestWordBatchesOfSpaCy(t *testing.T) {
	content, err := os.ReadFile("testdata/wordbatches/golden.json") // written by make.py there
	require.NoError(t, err)
	var cases []struct {
		Start, Compound, Tolerance float64
		Discard                    bool
		Words                      []int32
		Batches                    [][]int32
		Sizes                      int
	}
	require.NoError(t, json.Unmarshal(content, &cases))
	require.NotEmpty(t, cases)
	for _, c := range cases {
		w := WordBatches{Size: func(n int) float64 { return c.Start * math.Pow(c.Compound, float64(n)) }, Tolerance: c.Tolerance, DiscardOversize: c.Discard}
		var got [][]int32
		sizes := w.split(Range(nil, 0, len(c.Words)), c.Words, 1, 0, func(batch []int32) { got = append(got, slices.Clone(batch)) })
		require.Equal(t, c.Batches, got)
		require.Equal(t, c.Sizes, sizes)
	}
}

// compounding grows from 20 to 60 words.
func compounding(n int) float64 { return min(20*math.Pow(1.01, float64(n)), 60) }

func mustWordSampler(t require.TestingT, words []int32, b WordBatches, rank, size int) *WordSampler {
	s, err := NewWordSampler(words, b, rank, size, 5)
	require.NoError(t, err)
	return s
}

// drawWords draws numbers of words of documents.
func drawWords(t *rapid.T) []int32 {
	return rapid.SliceOfN(rapid.Int32Range(0, 40), 1, 60).Draw(t, "words")
}

// Over all ranks, each epoch visits each document once. size ranks with some words see the
// documents that one rank with size times the words sees, with about the same number of
// words each.
func TestRanksShareTheWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := drawWords(t)
		size := rapid.IntRange(1, 5).Draw(t, "size")
		b := WordBatches{Size: compounding, Tolerance: .2}
		one := mustWordSampler(t, words, WordBatches{Size: func(n int) float64 { return compounding(n) * float64(size) }, Tolerance: .2}, 0, 1)
		var ranks []*WordSampler
		for r := range size {
			ranks = append(ranks, mustWordSampler(t, words, b, r, size))
		}
		step := 0
		for epoch := range 3 {
			var seen []int32
			for ; one.Epoch(step) == epoch; step++ {
				all, global := one.Step(step)
				want := slices.Sorted(slices.Values(all))
				require.Len(t, want, global)
				require.NotEmpty(t, want)
				got := make([]int32, global)
				low, high, longest := int32(math.MaxInt32), int32(0), int32(0)
				for r, s := range ranks {
					mine, g := s.Step(step)
					require.Equal(t, global, g)
					sum := int32(0)
					for i, row := range mine {
						got[r+i*size] = row
						sum += words[row]
						longest = max(longest, words[row])
					}
					low, high = min(low, sum), max(high, sum)
				}
				slices.Sort(got)
				require.Equal(t, want, got)
				require.LessOrEqual(t, high-low, longest, "words of ranks differ by at most one document")
				seen = append(seen, got...)
			}
			slices.Sort(seen)
			require.Equal(t, Range(nil, 0, len(words)), seen)
		}
	})
}

// The rank with the longest document of a group has the shortest of the next.
func TestWordsAreBalanced(t *testing.T) {
	words := []int32{8, 7, 6, 5, 4, 3, 2, 1}
	for size, want := range map[int]int32{1: 36, 2: 18, 4: 9} {
		for rank := range size {
			s := mustWordSampler(t, words, WordBatches{Size: func(int) float64 { return 36 / float64(size) }}, rank, size)
			rows, _ := s.Step(0)
			sum := int32(0)
			for _, row := range rows {
				sum += words[row]
			}
			require.Equal(t, want, sum)
		}
	}
}

func TestWordStepsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := drawWords(t)
		b := WordBatches{Size: compounding, Tolerance: .2}
		s := mustWordSampler(t, words, b, 1, 2)
		for _, step := range rapid.SliceOfN(rapid.IntRange(0, 60), 1, 10).Draw(t, "steps") {
			got, global := s.Step(step)
			fresh, again := mustWordSampler(t, words, b, 1, 2).Step(step)
			require.True(t, slices.Equal(fresh, got), "step %d", step)
			require.Equal(t, again, global)
		}
		rows, global := s.Step(-1)
		require.Empty(t, rows)
		require.Zero(t, global)
	})
}

// Sizes compound across epochs: batches of later epochs have more documents.
func TestSizesPersist(t *testing.T) {
	words := slices.Repeat([]int32{1}, 100)
	s := mustWordSampler(t, words, WordBatches{Size: func(n int) float64 { return float64(10 * (n + 1)) }}, 0, 1)
	var counts []int
	for step := range 6 {
		_, n := s.Step(step)
		counts = append(counts, n)
	}
	require.Equal(t, []int{10, 20, 30, 40, 50, 50}, counts)
	require.Equal(t, 0, s.Epoch(3))
	require.Equal(t, 1, s.Epoch(4))
}

// A document that is too long is left out, unless an epoch would have nothing else.
func TestOversize(t *testing.T) {
	shrinking := func(n int) float64 { return float64(max(12-4*n, 1)) }
	s := mustWordSampler(t, []int32{9, 9, 9}, WordBatches{Size: shrinking, DiscardOversize: true}, 0, 1)
	_, n := s.Step(0)
	require.Equal(t, 1, n)
	require.Equal(t, 1, s.Epoch(3))
	_, n = s.Step(3)
	require.Equal(t, 1, n)
	_, err := NewWordSampler([]int32{9}, WordBatches{Size: func(int) float64 { return 8 }, Tolerance: .1, DiscardOversize: true}, 0, 1, 0)
	require.ErrorContains(t, err, "every document is longer than a batch")
}

func TestWordSamplerErrors(t *testing.T) {
	b := WordBatches{Size: compounding}
	for _, c := range []struct{ docs, rank, size int }{{0, 0, 1}, {1, 1, 1}, {1, -1, 1}, {1, 0, 0}} {
		_, err := NewWordSampler(make([]int32, c.docs), b, c.rank, c.size, 0)
		require.ErrorContains(t, err, "data: ", "%v", c)
	}
	b.Tolerance = math.NaN()
	_, err := NewWordSampler([]int32{1}, b, 0, 1, 0)
	require.ErrorContains(t, err, "tolerance")
}
