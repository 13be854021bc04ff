package collective

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Operands that share memory are refused before anything is sent, unless the input of an
// AllGather is this rank's piece of its result.
func TestOperandsThatOverlap(t *testing.T) {
	ctx := t.Context()
	views, transports := Local(1)
	g := NewGroup(views[0], OverTransport(views[0], transports[0]), Options{})
	defer g.Close()
	v := Of(make([]float32, 6))
	for name, err := range map[string]error{
		"AllToAll":      g.AllToAll(ctx, v, v),
		"a part of it":  g.AllToAll(ctx, v.Slice(0, 4), v.Slice(2, 6)),
		"AllToAllV":     g.AllToAllV(ctx, v.Slice(0, 3), v.Slice(2, 5), []int{3}, []int{3}),
		"SendRecv":      g.SendRecv(ctx, v, 0, v, 0),
		"Reduce":        g.Reduce(ctx, v.Slice(1, 6), v.Slice(0, 5), Sum, 0),
		"ReduceScatter": g.ReduceScatter(ctx, v.Slice(1, 6), v.Slice(0, 5), Sum),
		"Gather":        g.Gather(ctx, v.Slice(0, 5), v.Slice(1, 6), 0),
		"Scatter":       g.Scatter(ctx, v.Slice(0, 5), v.Slice(1, 6), 0),
		"AllGatherV":    g.AllGatherV(ctx, v.Slice(0, 5), v.Slice(1, 6), []int{5}),
		"other types":   g.AllGather(ctx, Of(make([]int32, 6)), v),
		"zero Vector":   g.Gather(ctx, Vector{}, v, 0),
		"other lengths": g.AllGather(ctx, v, v.Slice(0, 5)),
	} {
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "got 6 elements, want 6", name)
	}
	require.NoError(t, g.AllToAll(ctx, v.Slice(0, 3), v.Slice(3, 6)))
	require.NoError(t, g.AllGather(ctx, v, v))
	require.NoError(t, g.AllGatherV(ctx, v, v, []int{6}))
	require.NoError(t, g.Reduce(ctx, v, v, Sum, 0))
	require.NoError(t, g.ReduceScatter(ctx, v, v, Sum))
	require.NoError(t, g.Gather(ctx, v, v, 0))
	require.NoError(t, g.Scatter(ctx, v, v, 0))
	for lo, ok := range []bool{false, false, true, false, false} {
		piece := v.Slice(lo, lo+2)
		require.Equal(t, ok, pieceOf(&v, &piece, 2), lo)
		require.False(t, pieceOf(&v, &piece, 5), "there is no such piece")
	}
}

// In a ReduceScatterV, a rank's piece begins after those of the ranks below.
func TestPieceOfReduceScatterV(t *testing.T) {
	b := callBuilder{View{Self: 1, Members: make([]Member, 3)}}
	src, counts := Of(make([]float32, 6)), []int{3, 2, 1}
	for lo, ok := range []bool{false, false, false, true, false} {
		dst := src.Slice(lo, lo+2)
		err := b.reduceScatter(&Call{}, &dst, &src, counts, Sum)
		require.Equal(t, ok, err == nil, lo)
	}
}

// A vector that an AllToAllW writes to shares no memory with another, whichever begins first.
func TestScatteredOperandsThatOverlap(t *testing.T) {
	v := Of(make([]float32, 9))
	at := func(lo, hi int) [][]Vector { return [][]Vector{{v.Slice(lo, hi)}} }
	require.Error(t, apart(at(0, 4), at(3, 6)))
	require.Error(t, apart(at(3, 6), at(0, 4)))
	require.Error(t, apart(at(3, 4), [][]Vector{{v.Slice(0, 9), v.Slice(1, 2)}}))
	require.Error(t, apart([][]Vector{{v.Slice(0, 4), v.Slice(3, 6)}}, nil))
	require.NoError(t, apart(at(0, 3), at(3, 6)))
	require.NoError(t, apart(at(3, 6), at(0, 3)))
	require.NoError(t, apart(at(6, 9), [][]Vector{{v.Slice(0, 4), v.Slice(3, 6)}}))
}
