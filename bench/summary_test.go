package bench

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// In each iteration the slowest rank counts, which need not always be the same, and
// wrong elements of all ranks add up.
func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		name  string
		every []float64 // of each rank: the times, then the wrong elements
		n     int
		want  Timing
	}{
		{"one rank, one iteration", []float64{5, 0}, 1, Timing{Iterations: 1, Median: 5, Mean: 5, P99: 5}},
		{"one rank", []float64{4, 1, 10, 2, 7}, 4, Timing{Iterations: 4, Median: 3, Mean: 4.25, P99: 10, Wrong: 7}},
		{"two ranks take turns", []float64{1, 9, 1, 2, 8, 1, 6, 3}, 3, Timing{Iterations: 3, Median: 8, Mean: 23. / 3, P99: 9, Wrong: 5}},
		{"three ranks", []float64{1, 1, 0, 2, 5, 1, 3, 4, 0}, 2, Timing{Iterations: 2, Median: 4, Mean: 4, P99: 5, Wrong: 1}},
	} {
		require.Equal(t, &c.want, summarize(c.every, c.n), c.name)
	}
}

// p99 leaves out one iteration in a hundred, and none of fewer.
func TestP99(t *testing.T) {
	times := func(n int) []float64 {
		every := []float64{0}
		for i := range n {
			every = slices.Insert(every, 0, float64(i+1))
		}
		return every
	}
	for n, want := range map[int]float64{1: 1, 2: 2, 99: 99, 100: 99, 101: 100, 200: 198, 1000: 990, 2000: 1980} {
		require.Equal(t, want, summarize(times(n), n).P99, "%d iterations", n)
	}
}

// The median is the middle of any order, and moves with the values' unit and zero.
func TestMedianAndQuantileProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(-1000, 1000).Draw(t, "x")) })
		values := rapid.SliceOfN(whole, 1, 60).Draw(t, "values")
		shuffled := rapid.Permutation(values).Draw(t, "shuffled")
		require.Equal(t, Median(values), Median(shuffled))
		changed := make([]float64, len(values))
		for i, x := range values {
			changed[i] = 4*x - 12
		}
		require.Equal(t, 4*Median(values)-12, Median(changed))

		m, below, above := Median(values), 0, 0
		for _, x := range values {
			if x < m {
				below++
			}
			if x > m {
				above++
			}
		}
		require.LessOrEqual(t, 2*below, len(values))
		require.LessOrEqual(t, 2*above, len(values))
		require.LessOrEqual(t, Quantile(values, .5), m, "the lower middle")

		p, q := rapid.Float64Range(0, 1).Draw(t, "p"), rapid.Float64Range(0, 1).Draw(t, "q")
		require.LessOrEqual(t, Quantile(values, min(p, q)), Quantile(values, max(p, q)))
		require.Equal(t, slices.Min(values), Quantile(values, 0))
		require.Equal(t, slices.Max(values), Quantile(values, 1))
	})
}

// The sample standard deviation of hand-computed cases.
func TestMeanStd(t *testing.T) {
	for _, c := range []struct {
		values    []float64
		mean, std float64
	}{
		{[]float64{7}, 7, 0},
		{[]float64{3, 3, 3}, 3, 0},
		{[]float64{1, 3}, 2, math.Sqrt2},
		{[]float64{2, 4, 4, 4, 5, 5, 7, 9}, 5, math.Sqrt(32. / 7)},
		{[]float64{-1, 0, 1}, 0, 1},
	} {
		mean, std := meanStd(c.values, func(x float64) float64 { return x })
		require.InDelta(t, c.mean, mean, 1e-12, "%v", c.values)
		require.InDelta(t, c.std, std, 1e-12, "%v", c.values)
	}
}

// The number of iterations fills the time, within limits.
func TestAdapt(t *testing.T) {
	for _, c := range []struct {
		name    string
		seconds float64
		fill    time.Duration
		want    int
	}{
		{"a quarter of a second", .01, 0, 25},
		{"rounded up", .02, 0, 13},
		{"at least five", 10, 0, 5},
		{"at most 20,000", 1e-6, 0, 20_000},
		{"shorter than the clock's resolution", 0, 0, 20_000},
		{"a time of the user", .01, 2 * time.Second, 200},
		{"more than 20,000 with a time", 1e-5, time.Second, 100_000},
		{"at least five with a time", 10, time.Second, 5},
		{"at most a million with a time", 0, time.Hour, 1_000_000},
	} {
		require.Equal(t, c.want, adapt(c.seconds, c.fill), c.name)
	}
}

// A table for a group takes the first, fastest way of each size, in whole nanoseconds of
// at least one.
func TestTableOf(t *testing.T) {
	require.Empty(t, TableOf(3, nil).Entries)
	ways := []Way{{Method: 3, Segment: 65536, Measured: 12.3456, Predicted: 10}, {Method: 1, Segment: 65536, Measured: 12.3456, Predicted: 1}}
	short := []Way{{Method: 2, Segment: 262144, Measured: 1e-9}}
	table := TableOf(3, []Tuned{{Bytes: 4, Ways: short}, {Bytes: 1 << 20, Ways: ways}})
	require.Equal(t, 3, table.Ranks)
	require.Len(t, table.Entries, 2)
	first, second := table.Entries[0], table.Entries[1]
	require.Equal(t, 4, first.Bytes)
	require.EqualValues(t, 2, first.Method)
	require.Equal(t, 262144, first.Segment)
	require.Equal(t, time.Duration(1), first.Measured, "a table has no times of 0")
	require.Equal(t, time.Duration(1), first.Predicted)
	require.EqualValues(t, 3, second.Method, "the first of equal ways")
	require.Equal(t, 12345*time.Nanosecond, second.Measured)
	require.Equal(t, 10*time.Microsecond, second.Predicted)
}

// litterer catches up after a late tick, and makes nothing twice.
func TestLittererCatchesUp(t *testing.T) {
	var l litterer
	l.makeUpTo(0)
	require.Zero(t, l.made)
	require.Nil(t, l.last)
	l.makeUpTo(3)
	require.Equal(t, 3, l.made)
	require.Len(t, l.last, 64<<10)
	l.makeUpTo(10)
	l.makeUpTo(7)
	require.Equal(t, 10, l.made)
}
