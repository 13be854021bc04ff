package data

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func mustSampler(t require.TestingT, rows, batch, rank, size int, seed uint64) *Sampler {
	s, err := NewSampler(rows, batch, rank, size, seed)
	require.NoError(t, err)
	return s
}

// Over all ranks, each epoch visits each row once. size ranks with batch B see the rows
// that one rank with batch size*B sees, in the same order.
func TestRanksShareTheGlobalBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 300).Draw(t, "rows")
		batch := rapid.IntRange(1, 40).Draw(t, "batch")
		size := rapid.IntRange(1, 9).Draw(t, "size")
		seed := rapid.Uint64().Draw(t, "seed")
		one := mustSampler(t, rows, batch*size, 0, 1, seed)
		ranks := make([]*Sampler, size)
		for r := range ranks {
			ranks[r] = mustSampler(t, rows, batch, r, size, seed)
		}
		for epoch := range 3 {
			var seen []int32
			for step := range one.StepsPerEpoch() {
				at := epoch*one.StepsPerEpoch() + step
				want, global := one.Step(at)
				require.Len(t, want, global)
				got := make([]int32, global)
				for r, s := range ranks {
					mine, g := s.Step(at)
					require.Equal(t, global, g)
					require.LessOrEqual(t, len(mine), batch)
					for i, row := range mine {
						got[r+i*size] = row
					}
				}
				require.Equal(t, want, got)
				seen = append(seen, want...)
			}
			slices.Sort(seen)
			require.Equal(t, Range(nil, 0, rows), seen)
		}
	})
}

func TestStepsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 100).Draw(t, "rows")
		batch := rapid.IntRange(1, 20).Draw(t, "batch")
		steps := rapid.SliceOfN(rapid.IntRange(0, 200), 1, 20).Draw(t, "steps")
		s := mustSampler(t, rows, batch, 1, 3, 7)
		for _, step := range steps {
			got, _ := s.Step(step)
			fresh, _ := mustSampler(t, rows, batch, 1, 3, 7).Step(step)
			require.True(t, slices.Equal(fresh, got), "step %d: %v, from a new sampler %v", step, got, fresh)
		}
	})
}

func TestLastBatchIsPartial(t *testing.T) {
	rows, global := mustSampler(t, 10, 2, 1, 4, 0).Step(1)
	require.Equal(t, 2, global)
	require.Len(t, rows, 1)
	rows, global = mustSampler(t, 10, 2, 3, 4, 0).Step(1)
	require.Equal(t, 2, global)
	require.Empty(t, rows, "a rank may get no rows")
	rows, global = mustSampler(t, 10, 2, 0, 4, 0).Step(-1)
	require.Zero(t, global)
	require.Empty(t, rows)
}

// The order for a seed is part of a run's definition and must not change between
// versions.
func TestOrderIsPinned(t *testing.T) {
	first := func(seed uint64, step int) []int32 {
		rows, _ := mustSampler(t, 10, 10, 0, 1, seed).Step(step)
		return slices.Clone(rows)
	}
	require.Equal(t, []int32{4, 3, 0, 6, 5, 1, 8, 2, 9, 7}, first(0, 0))
	require.NotEqual(t, first(0, 0), first(0, 1), "epochs differ")
	require.NotEqual(t, first(0, 0), first(1, 0), "seeds differ")
}

// Each row is equally likely at each position, within five standard deviations.
func TestShuffleIsFair(t *testing.T) {
	const rows, epochs = 6, 6000
	var count [rows][rows]int
	s := mustSampler(t, rows, rows, 0, 1, 3)
	for e := range epochs {
		got, _ := s.Step(e)
		for place, row := range got {
			count[place][row]++
		}
	}
	for place := range count {
		for row, n := range count[place] {
			require.InDelta(t, epochs/rows, n, 5*29, "row %d at %d", row, place)
		}
	}
}

func TestSamplerErrors(t *testing.T) {
	for _, c := range [][4]int{{0, 1, 0, 1}, {1, 0, 0, 1}, {1, 1, 1, 1}, {1, 1, -1, 1}, {1, 1, 0, 0}} {
		_, err := NewSampler(c[0], c[1], c[2], c[3], 0)
		require.ErrorContains(t, err, "data: ", "%v", c)
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	s := mustSampler(t, 1000, 10, 0, 2, 0)
	s.Step(0)
	step := 0
	require.Zero(t, testing.AllocsPerRun(200, func() { step++; s.Step(step) }))
}

func TestShardsCoverEachRowOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total, size := rapid.IntRange(0, 1000).Draw(t, "total"), rapid.IntRange(1, 40).Draw(t, "size")
		next := 0
		for r := range size {
			lo, hi := Shard(total, r, size)
			require.Equal(t, next, lo)
			require.Contains(t, []int{total / size, total/size + 1}, hi-lo)
			next = hi
		}
		require.Equal(t, total, next)
	})
	require.Equal(t, []int32{9, 2, 3}, Range([]int32{9}, 2, 4))
}
