package trainer

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/collective"
)

// The specification: sort by magnitude, then by place.
func TestKeepLargest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.OneOf(rapid.Float32(), rapid.SampledFrom([]float32{0, 1, -1, 2, -2, float32(math.Copysign(0, -1))})), 1, 300).Draw(t, "x")
		k := rapid.IntRange(1, len(x)).Draw(t, "k")
		order := make([]int, len(x))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(math.Abs(float64(x[b])), math.Abs(float64(x[a])))
		})
		want := slices.Sorted(slices.Values(order[:k]))
		b, rest := make([]byte, k*entryLen), make([]float32, len(x))
		keepLargest(b, rest, x, k)
		got := make([]int, k)
		for i := range got {
			got[i] = int(binary.LittleEndian.Uint32(b[i*entryLen:]))
			v := math.Float32frombits(binary.LittleEndian.Uint32(b[i*entryLen+4:]))
			require.Equal(t, math.Float32bits(x[got[i]]), math.Float32bits(v))
			require.Zero(t, rest[got[i]])
		}
		require.Equal(t, want, got)
		for _, i := range order[k:] {
			require.Equal(t, x[i], rest[i], "what does not leave is kept")
		}
	})
}

// What ranks kept is added up as a group would add vectors with zeros between.
func TestSumEntriesIsInRingOrder(t *testing.T) {
	const n, at, k, ranks = 3*ringBlock + 100, ringBlock - 50, 5000, 3
	packed, dense := make([][]byte, ranks), make([]collective.Vector, ranks)
	for r := range ranks {
		x, rest := draws(n, uint64(r)), make([]float32, n)
		packed[r] = make([]byte, k*entryLen)
		keepLargest(packed[r], rest, x, k)
		for i := range x {
			x[i] -= rest[i] // one of the two is x[i], and the other zero
		}
		dense[r] = collective.Of(x).At(at)
	}
	got, want, cursors := draws(n, 9), make([]float32, n), make([]int, ranks)
	require.NoError(t, sumEntries(got, at, packed, cursors))
	require.NoError(t, collective.FoldLocal(collective.Sum, collective.Of(want).At(at), dense))
	require.Equal(t, want, got)

	entries := func(places ...uint32) (b []byte) {
		for _, at := range places {
			b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, at), 1)
		}
		return b
	}
	fine, x := entries(1, ringBlock+1), make([]float32, 2*ringBlock)
	require.NoError(t, sumEntries(x, 0, [][]byte{fine, fine}, cursors[:2]))
	require.ErrorContains(t, sumEntries(x, 0, [][]byte{fine, entries(ringBlock+1, 1)}, cursors[:2]), "rank 1 kept is not in order")
	require.ErrorContains(t, sumEntries(x, 0, [][]byte{entries(1, 2*ringBlock), fine}, cursors[:2]), "rank 0 kept is beyond the bucket")
}

// As many ranks as there are can send the greatest number without an infinite
// sum.
func TestGreatest(t *testing.T) {
	require.Equal(t, float32(65504), greatest(collective.Float16, 1))
	require.Equal(t, float32(21824), greatest(collective.Float16, 3), "65504/3 is nearer to the next")
	for _, dtype := range []collective.DType{collective.Float16, collective.BFloat16} {
		for size := 1; size <= 64; size++ {
			operands, bits := make([]collective.Vector, size), make([]uint16, 1)
			require.NoError(t, collective.Round16(bits, []float32{greatest(dtype, size)}, dtype))
			for r := range operands {
				operands[r] = collective.Of16(bits, dtype)
			}
			sum, x := make([]uint16, 1), make([]float32, 1)
			require.NoError(t, collective.FoldLocal(collective.Sum, collective.Of16(sum, dtype), operands))
			require.NoError(t, collective.Widen16(x, sum, dtype))
			require.Less(t, float64(x[0]), math.Inf(1), "%v of %d ranks", dtype, size)
		}
	}
}
