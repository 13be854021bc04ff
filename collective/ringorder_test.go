package collective_test

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// What one process folds for itself has the bits of a group, wherever the
// vectors lie in their arena and whichever of them the result replaces.
func TestFoldLocalEqualsAllReduce(t *testing.T) {
	groups := map[int][]*collective.Group{}
	for n := 1; n <= 5; n++ {
		groups[n] = collectivetest.Local(t, n)
	}
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 5).Draw(rt, "size")
		n := rapid.SampledFrom([]int{0, 1, 100, 4096, 4097, 30_000}).Draw(rt, "n")
		at := rapid.SampledFrom([]int{0, 1, 4095, 4096, 12_345}).Draw(rt, "at")
		op := rapid.SampledFrom([]collective.Op{collective.Sum, collective.Mean, collective.Max, collective.Prod}).Draw(rt, "op")
		alias := rapid.IntRange(-1, size-1).Draw(rt, "alias")
		want := make([][]float32, size)
		collectivetest.Run(t, groups[size], func(ctx context.Context, g *collective.Group) {
			s := collectivetest.Operands[float32](g.Rank(), n)
			assert.NoError(t, g.AllReduce(ctx, collective.Of(s).At(at), op))
			want[g.Rank()] = s
		})
		all := make([]collective.Vector, size)
		mine := make([][]float32, size)
		for k := range all {
			mine[k] = collectivetest.Operands[float32](k, n)
			all[k] = collective.Of(mine[k]).At(at)
		}
		got := make([]float32, n)
		dst := collective.Of(got).At(at)
		if alias >= 0 {
			got, dst = mine[alias], all[alias]
		}
		require.NoError(rt, collective.FoldLocal(op, dst, all))
		for i := range got {
			require.Equal(rt, math.Float32bits(want[0][i]), math.Float32bits(got[i]), "element %d", i)
		}
		for k := range all {
			if k != alias {
				require.Equal(rt, collectivetest.Operands[float32](k, n), mine[k], "operand %d stays", k)
			}
		}
	})
}

// FoldPair has the bits of Range, or leaves operands in several blocks alone.
func TestFoldPairEqualsRange(t *testing.T) {
	var c collective.Chain
	sum := collective.Call{DType: collective.Float32, Op: collective.Sum}
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.SampledFrom([]int{1, 7, 8, 9, 95, 96, 97, 4096, 4097}).Draw(rt, "n")
		at := rapid.SampledFrom([]int{0, 1, 4000, 4095, 4096, 8191, 12_345}).Draw(rt, "at")
		var operands [2][]byte
		for k := range operands {
			operands[k], _ = collective.Of(collectivetest.Operands[float32](k, n)).Host()
			for i := 3; i < n; i += 5 { // NaNs that differ show the order in which operands are added
				binary.LittleEndian.PutUint32(operands[k][4*i:], 0x7fc00000|uint32(k))
			}
		}
		want, got := make([]byte, 4*n), make([]byte, 4*n)
		c.Range(collective.Float32, collective.Sum, at, want, operands[:])
		oneBlock := at/4096 == (at+n-1)/4096
		require.Equal(rt, oneBlock, collective.FoldPair(&sum, at, got, operands[0], operands[1]))
		if !oneBlock {
			require.Equal(rt, make([]byte, 4*n), got)
			return
		}
		require.Equal(rt, want, got)
		require.True(rt, collective.FoldPair(&sum, at, operands[1], operands[0], operands[1]))
		require.Equal(rt, want, operands[1], "in place of the second operand")
		for _, other := range []collective.Call{{DType: collective.Int32, Op: collective.Sum}, {DType: collective.Float32, Op: collective.Max}} {
			require.False(rt, collective.FoldPair(&other, at, got, operands[0], operands[1]))
		}
	})
}

// An order that differs gives other bits here, so the test above can fail.
func TestFoldLocalOrderMatters(t *testing.T) {
	all := make([]collective.Vector, 3)
	for k := range all {
		all[k] = collective.Of(collectivetest.Operands[float32](k, 30_000))
	}
	got, other := make([]float32, 30_000), make([]float32, 30_000)
	require.NoError(t, collective.FoldLocal(collective.Sum, collective.Of(got), all))
	slices.Reverse(all)
	require.NoError(t, collective.FoldLocal(collective.Sum, collective.Of(other), all))
	require.NotEqual(t, got, other)
}

func TestFoldLocalRefuses(t *testing.T) {
	x, y := collective.Of(make([]float32, 3)), collective.Of(make([]float32, 4))
	require.ErrorContains(t, collective.FoldLocal(collective.Sum, x, nil), "at least one operand")
	require.ErrorContains(t, collective.FoldLocal(collective.Sum, x, []collective.Vector{x, y}), "operand 1")
	require.ErrorContains(t, collective.FoldLocal(collective.Sum, x, []collective.Vector{x.At(1)}), "operand 0 differs")
	require.ErrorContains(t, collective.FoldLocal(collective.Sum, x, []collective.Vector{collective.Of(make([]int32, 3))}), "operand 0 differs")
	require.Error(t, collective.FoldLocal(collective.Op(99), x, []collective.Vector{x}))
	device := collective.OnDevice(0, 4096, 3, collective.Float32)
	require.ErrorIs(t, collective.FoldLocal(collective.Sum, device, []collective.Vector{device}), collective.ErrUnsupported)
}
