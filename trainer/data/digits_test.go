package data

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The bytes are the same on every machine: these sums were computed on amd64, on 386, and
// on arm64, where Go fuses multiplications with additions.
func TestDigitsArePinned(t *testing.T) {
	train, test := Generate(DigitsOptions{Train: 20, Test: 10})
	require.Equal(t, "6037a77ad9dc9bcab281284da78d5c9cab2f7f3e68a79f2a3784fd47789fde43", (&Set{train, test}).Sum())
}

func TestDigitsDoNotDependOnWorkers(t *testing.T) {
	o := DigitsOptions{Train: 53, Test: 17, Seed: 5, Workers: 1}
	train, test := Generate(o)
	for _, workers := range []int{2, 7, 100} {
		o.Workers = workers
		train2, test2 := Generate(o)
		require.Equal(t, train, train2)
		require.Equal(t, test, test2)
	}
}

func TestDigitsAreBalancedAndShuffled(t *testing.T) {
	for _, seed := range []uint64{0, 1} {
		train, test := Generate(DigitsOptions{Train: 300, Test: 100, Seed: seed, Side: 8})
		for _, m := range []*Images{train, test} {
			var count [10]int
			inOrder := 0
			for i, l := range m.Labels {
				count[l]++
				if int(l) == i%10 {
					inOrder++
				}
			}
			for _, n := range count {
				require.Equal(t, m.Rows/10, n)
			}
			require.Less(t, inOrder, m.Rows/4, "labels must be shuffled")
		}
		require.NotEqual(t, train.Labels[:100], test.Labels)
	}
}

func TestDigitsDiffer(t *testing.T) {
	train, test := Generate(DigitsOptions{Train: 60, Test: 60})
	other, _ := Generate(DigitsOptions{Train: 60, Test: 60, Seed: 1})
	seen := make(map[string]bool)
	for _, m := range []*Images{train, test, other} {
		for i := range m.Rows {
			seen[string(m.Image(i))] = true
		}
	}
	require.Len(t, seen, 180, "no image occurs twice, in either part or for either seed")
	require.False(t, bytes.Equal(train.Labels, other.Labels))
}

// Labels match the images: the mean image of each class recognises far more of the test
// images than chance, and far from all of them.
func TestDigitsMatchTheirLabels(t *testing.T) {
	train, test := Generate(DigitsOptions{Train: 1000, Test: 500})
	n := train.Features()
	var mean [10][]float64
	for c := range mean {
		mean[c] = make([]float64, n)
	}
	for i, l := range train.Labels {
		for j, p := range train.Image(i) {
			mean[l][j] += float64(p) / 100
		}
	}
	right := 0
	for i, l := range test.Labels {
		best, bestAt := 0, math.Inf(1)
		for c := range mean {
			d := 0.0
			for j, p := range test.Image(i) {
				d += (float64(p) - mean[c][j]) * (float64(p) - mean[c][j])
			}
			if d < bestAt {
				best, bestAt = c, d
			}
		}
		if best == int(l) {
			right++
		}
	}
	require.Greater(t, right, 350)
	require.Less(t, right, 475)
}

func TestExactFunctions(t *testing.T) {
	for a := -7.0; a < 7; a += .01 {
		sin, cos := sincos(a)
		require.InDelta(t, math.Sin(a), sin, 1e-8)
		require.InDelta(t, math.Cos(a), cos, 1e-8)
	}
	l := newLogistic()
	for x := -9.0; x < 9; x += .003 {
		require.InDelta(t, 1/(1+math.Exp(x)), l.at(x), .005)
	}
	require.Equal(t, []float64{1, 1, 0, 0}, []float64{l.at(math.Inf(-1)), l.at(-8), l.at(8), l.at(math.Inf(1))})
}

func TestNoise(t *testing.T) {
	var n noise
	n.seed(1, 2)
	const draws = 200_000
	var sum, square, beyond float64
	lowest, highest := 5.0, 3.0
	for range draws {
		v := n.normal(2)
		sum += v
		square += v * v
		if math.Abs(v) > 4 {
			beyond++
		}
		u := n.uniform(3, 5)
		lowest, highest = min(lowest, u), max(highest, u)
	}
	require.InDelta(t, 3, lowest, .001)
	require.InDelta(t, 5, highest, .001)
	require.Less(t, highest, 5.0)
	require.InDelta(t, 0, sum/draws, .02)
	require.InDelta(t, 4, square/draws, .05)
	require.InDelta(t, .0455, beyond/draws, .004, "fraction beyond two deviations")
}

func BenchmarkDraw(b *testing.B) {
	p := newPen(28, 28)
	dst := make([]byte, 28*28)
	for i := 0; b.Loop(); i++ {
		p.draw(dst, i%10, uint64(i), trainSplit)
	}
}
