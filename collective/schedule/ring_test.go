package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// A symbol is what a rank holds of a chunk: the ranks whose operands have been
// combined, in order.
type symbol []int

func TestRingFoldsInRingOrder(t *testing.T) {
	for size := 1; size <= 17; size++ {
		held := make([][]symbol, size) // [rank][chunk]
		for r := range held {
			held[r] = make([]symbol, size)
			for c := range held[r] {
				held[r][c] = symbol{r}
			}
		}
		for i := range schedule.RingSteps(size) {
			next := make([][]symbol, size)
			for r := range held {
				next[r] = append([]symbol(nil), held[r]...)
				mine := schedule.RingStep(r, size, i)
				down := schedule.RingStep(schedule.Down(r, size), size, i)
				require.Equal(t, down.Send, mine.Recv, "size %d step %d rank %d: neighbours must agree", size, i, r)
				require.Equal(t, down.Fold, mine.Fold)
				in := held[schedule.Down(r, size)][mine.Recv]
				if mine.Fold {
					next[r][mine.Recv] = append(append(symbol(nil), in...), held[r][mine.Recv]...)
				} else {
					next[r][mine.Recv] = in
				}
			}
			held = next
			if i == size-2 {
				for r := range held {
					c := schedule.Owned(r, size)
					require.Equal(t, ringOrder(c, size), held[r][c], "size %d rank %d owns chunk %d", size, r, c)
				}
			}
		}
		for r := range held {
			for c := range held[r] {
				require.Equal(t, ringOrder(c, size), held[r][c], "size %d rank %d chunk %d", size, r, c)
			}
		}
	}
}

func ringOrder(chunk, size int) symbol {
	s := make(symbol, size)
	for i := range s {
		s[i] = (chunk + i) % size
	}
	return s
}

func TestGatherBringsEverybodyEverything(t *testing.T) {
	for size := 1; size <= 17; size++ {
		has := make([]map[int]bool, size)
		for r := range has {
			has[r] = map[int]bool{r: true}
		}
		for i := range size - 1 {
			for r := range has {
				down := schedule.Down(r, size)
				s := schedule.GatherStep(r, size, i)
				require.Equal(t, schedule.GatherStep(down, size, i).Send, s.Recv)
				require.False(t, has[r][s.Recv], "each chunk arrives once")
			}
			for r := range has {
				require.True(t, has[r][schedule.GatherStep(r, size, i).Send], "a rank sends only chunks that it has")
			}
			for r := range has {
				has[r][schedule.GatherStep(r, size, i).Recv] = true
			}
		}
		for r := range has {
			require.Len(t, has[r], size)
		}
	}
}

func TestDisseminationReachesAll(t *testing.T) {
	for size := 1; size <= 17; size++ {
		heard := make([]map[int]bool, size)
		for r := range heard {
			heard[r] = map[int]bool{r: true}
		}
		for i := range schedule.Rounds(size) {
			next := make([]map[int]bool, size)
			for r := range heard {
				to, from := schedule.Round(r, size, i)
				back, _ := schedule.Round(from, size, i)
				require.Equal(t, r, back, "the receiver expects the sender")
				require.NotEqual(t, r, to)
				next[r] = map[int]bool{}
				for _, m := range []map[int]bool{heard[r], heard[from]} {
					for k := range m {
						next[r][k] = true
					}
				}
			}
			heard = next
		}
		for r := range heard {
			require.Len(t, heard[r], size, "size %d rank %d", size, r)
		}
	}
}

// Chunks cover each element of a vector exactly once. The position of an element in
// the arena alone determines its chunk, wherever the vector begins.
func TestChunksCoverOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 17).Draw(t, "size")
		offset := rapid.IntRange(0, 40*schedule.BlockLen).Draw(t, "offset")
		n := rapid.IntRange(0, 30*schedule.BlockLen).Draw(t, "n")
		blocks := rapid.IntRange(1, 5).Draw(t, "blocks")
		seen := make([]int, n)
		for c := range size {
			chunk := schedule.Chunk{Offset: offset, Len: n, Residue: c, Size: size}
			covered := 0
			for s := range chunk.Segments(blocks) {
				from, to := chunk.Segment(s, blocks)
				require.LessOrEqual(t, to-from, blocks)
				for i := from; i < to; i++ {
					require.Equal(t, covered, i)
					covered++
					lo, hi := chunk.Block(i)
					require.Less(t, lo, hi, "no empty block")
					for e := lo; e < hi; e++ {
						seen[e]++
						require.Equal(t, c, (offset+e)/schedule.BlockLen%size)
					}
				}
			}
			require.Equal(t, chunk.Blocks(), covered)
		}
		for e, times := range seen {
			require.Equal(t, 1, times, "element %d", e)
		}
	})
}

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		size, count int
		near, far   schedule.Method
	}{
		{2, 1, schedule.OneShot, schedule.OneShot}, {2, 16 << 10, schedule.OneShot, schedule.OneShot},
		{2, 16<<10 + 1, schedule.Ring, schedule.Ring}, {4, 8 << 10, schedule.Bruck, schedule.Ring}, {4, 16 << 10, schedule.Direct, schedule.Ring},
		{3, 1, schedule.Bruck, schedule.OneShot}, {4, 5 << 10, schedule.Bruck, schedule.OneShot}, {9, 1, schedule.Collected, schedule.OneShot},
		{1, 1 << 20, schedule.OneShot, schedule.OneShot}, {8, 0, schedule.Bruck, schedule.OneShot}, {16, 1, schedule.Collected, schedule.OneShot}, {17, 0, schedule.Collected, schedule.Collected},
		{8, 8 << 10, schedule.Collected, schedule.Ring}, {8, 8<<10 + 1, schedule.Ring, schedule.Ring}, {3, 100_001, schedule.Direct, schedule.Ring},
	} {
		for near, want := range map[bool]schedule.Method{true: c.near, false: c.far} {
			p := schedule.PlanReduce(c.size, c.count, 4, near, true)
			require.Equal(t, want, p.Method, "%+v", c)
			require.NotEmpty(t, p.Why)
			require.Zero(t, p.Segment%schedule.BlockLen)
			require.Positive(t, p.Segment)
		}
	}
	require.Equal(t, schedule.Direct, schedule.PlanReduce(4, 100_000, 2, false, false).Method)
	require.Equal(t, schedule.Star, schedule.PlanBroadcast(4, 100, 4).Method)
	require.Equal(t, schedule.Chain, schedule.PlanBroadcast(4, 100_000, 4).Method)
	require.Equal(t, "dissemination", schedule.PlanBarrier().Method.String())
}

func TestPairsMeet(t *testing.T) {
	for size := 1; size <= 17; size++ {
		for r := range size {
			met := map[int]bool{r: true}
			for i := 1; i < size; i++ {
				to, from := schedule.Pair(r, size, i)
				_, back := schedule.Pair(to, size, i)
				require.Equal(t, r, back)
				require.False(t, met[from])
				met[from] = true
			}
			require.Len(t, met, size)
		}
	}
}
