package trainer

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

// A row is worth its number, too.
func TestFewerAsRows(t *testing.T) {
	require.True(t, FewerAsRows(0, 1000, 96))
	require.True(t, FewerAsRows(1979, 1000, 96))
	require.False(t, FewerAsRows(1980, 1000, 96), "97 elements per row, in place of 2 times 96")
	require.False(t, FewerAsRows(1000, 1000, 1), "the numbers of rows count, too")
}

func TestParseSparse(t *testing.T) {
	for _, s := range []Sparse{SparseOff, SparseAuto, SparseOn} {
		parsed, err := ParseSparse(s.String())
		require.NoError(t, err)
		require.Equal(t, s, parsed)
	}
	_, err := ParseSparse("rows")
	require.EqualError(t, err, `must be auto, on or off, not "rows"`)
	require.Equal(t, "Sparse(3)", Sparse(3).String())
}

// A table of 64 KiB may leave as rows. For a smaller one, latency decides.
func TestSmallTables(t *testing.T) {
	table := func(bytes int) *nn.Param {
		return &nn.Param{Grads: nn.Host(make([]float32, bytes/4)), Touched: nn.NewRowSet(1)}
	}
	require.True(t, SparseAuto.applies(table(leastBucket)))
	require.False(t, SparseAuto.applies(table(leastBucket-4)))
	require.True(t, SparseOn.applies(table(4)))
}

// A table has a bucket of its own, and the parameters around it are in others.
func TestBucketsAroundTables(t *testing.T) {
	be := cpu.New(cpu.Options{})
	defer be.Close()
	b := nn.NewBuilder(1)
	b.Param("a", []int{100}, nn.Zeros)
	small := b.Param("small", []int{4, 4}, nn.Zeros)
	large := b.Param("large", []int{400, 50}, nn.Zeros)
	c := b.Param("c", []int{1000}, nn.Zeros)
	d := b.Param("d", []int{100}, nn.Zeros)
	small.Touched, large.Touched = nn.NewRowSet(4), nn.NewRowSet(400)
	p, err := b.Build(be)
	require.NoError(t, err)
	for _, test := range []struct {
		s     Sparse
		bytes int
		cuts  []int
		alone []bool
	}{
		{SparseOff, 1 << 20, []int{0}, []bool{false}},
		{SparseAuto, 1 << 20, []int{c.Offset, large.Offset, 0}, []bool{false, true, false}},
		{SparseOn, 1 << 20, []int{c.Offset, large.Offset, small.Offset, 0}, []bool{false, true, true, false}},
		{SparseAuto, 4, []int{d.Offset, c.Offset, large.Offset, small.Offset, 0}, []bool{false, false, true, false, false}},
	} {
		cuts, alone := cutsAround(p, test.bytes, test.s.applies)
		require.Equal(t, test.cuts, cuts, "%v", test.s)
		require.Equal(t, test.alone, alone, "%v", test.s)
		require.Equal(t, lengths(cuts, p.Grads.Len()), test.s.Buckets(p, test.bytes))
	}
}

// Whole tables leave in one call if they are neighbours. What lies between others has left in a
// bucket, and must not be added up twice.
func TestWholeTablesAroundAParameter(t *testing.T) {
	collectivetest.Ranks(t, 2, func(ctx context.Context, g *collective.Group) {
		b := nn.NewBuilder(1)
		for _, name := range []string{"first", "second", "between", "last"} {
			if q := b.Param(name, []int{400, 50}, nn.Zeros); name != "between" {
				q.Touched = nn.NewRowSet(400)
				q.Touched.AddAll()
			}
		}
		be := cpu.New(cpu.Options{})
		defer be.Close()
		p, err := b.Build(be)
		assert.NoError(t, err)
		for i := range p.Grads.Float32s() {
			p.Grads.Float32s()[i] = 1
		}
		x := newRowExchange(g, p, SparseAuto)
		assert.NoError(t, x.sum(ctx, func(int) []int64 { return []int64{400, 400, 400} }))
		assert.Equal(t, 2, x.calls)
		for i, want := range []float32{2, 2, 1, 2} {
			grads := p.List[i].Grads.Float32s()
			assert.Equal(t, []float32{want, want}, []float32{grads[0], grads[len(grads)-1]}, p.List[i].Name)
		}
	})
}
