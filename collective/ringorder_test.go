package collective_test

import (
	"context"
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
