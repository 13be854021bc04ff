package bench_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// Bandwidths follow nccl-tests' *GetBw functions: baseBw and factor are as in
// its sources, where count is the number of elements that a rank gives (allreduce,
// broadcast, reduce, sendrecv), or that one rank gives to one other (the rest).
func TestBandwidthsOfNCCLTests(t *testing.T) {
	type formula struct {
		base, factor func(count, typesize, nranks, sec float64) float64
	}
	of1 := func(count, typesize, _, sec float64) float64 { return count * typesize / 1.0e9 / sec }
	ofAll := func(count, typesize, nranks, sec float64) float64 { return count * nranks * typesize / 1.0e9 / sec }
	others := func(_, _, nranks, _ float64) float64 { return (nranks - 1) / nranks }
	nothing := func(_, _, _, _ float64) float64 { return 1 }
	formulas := map[string]formula{
		"allreduce":     {of1, func(_, _, nranks, _ float64) float64 { return 2 * (nranks - 1) / nranks }},
		"allgather":     {ofAll, others},
		"reducescatter": {ofAll, others},
		"alltoall":      {ofAll, others},
		"broadcast":     {of1, nothing},
		"sendrecv":      {of1, nothing},
		"reduce":        {of1, nothing},
		"gather":        {ofAll, others},
		"scatter":       {ofAll, others},
	}
	require.Len(t, formulas, len(bench.Operations()), "every operation has a formula")
	// The elements that one rank gives to one call, per element of count.
	gives := func(op string, ranks int) int {
		switch op {
		case "allreduce", "broadcast", "reduce", "sendrecv":
			return 1
		}
		return ranks
	}
	for op, f := range formulas {
		for _, ranks := range []int{1, 2, 3, 4, 7, 8, 16, 64, 1000} {
			for _, count := range []int{1, 3, 1 << 10, 1 << 28} {
				for _, us := range []float64{.001, 1, 12.5, 1e7} {
					for dtype := collective.Float32; dtype <= collective.Uint8; dtype++ {
						r := bench.Row{Op: op, DType: dtype, Ranks: ranks, Count: count, Size: count * gives(op, ranks) * dtype.Size()}
						timing := &bench.Timing{Median: us}
						args := []float64{float64(count), float64(dtype.Size()), float64(ranks), us / 1e6}
						base := f.base(args[0], args[1], args[2], args[3])
						require.InEpsilon(t, base, r.AlgBW(timing), 1e-12, "algbw of %s of %d ranks", op, ranks)
						require.InDelta(t, base*f.factor(args[0], args[1], args[2], args[3]), r.BusBW(timing), 1e-12*base, "busbw of %s of %d ranks", op, ranks)
					}
				}
			}
		}
	}
}

// Sizes are rounded down to whole elements for each rank, to at least one, as
// nccl-tests does. Equal ones are measured once.
func TestSizesOfRows(t *testing.T) {
	type size struct{ bytes, count int }
	for _, c := range []struct {
		name  string
		op    string
		dtype collective.DType
		ranks int
		sizes []int
		want  []size
	}{
		{"a vector", "allreduce", collective.Float32, 3, []int{4, 8, 1000}, []size{{4, 1}, {8, 2}, {1000, 250}}},
		{"less than an element", "allreduce", collective.Float64, 2, []int{1}, []size{{8, 1}}},
		{"not a whole number", "broadcast", collective.Float64, 2, []int{23}, []size{{16, 2}}},
		{"two that become equal", "broadcast", collective.Float64, 2, []int{16, 23, 24}, []size{{16, 2}, {24, 3}}},
		{"parts of all ranks", "allgather", collective.Float32, 3, []int{24}, []size{{24, 2}}},
		{"parts that do not fit", "allgather", collective.Float32, 3, []int{35}, []size{{24, 2}}},
		{"less than an element of each", "alltoall", collective.Int64, 3, []int{1, 24, 47, 48}, []size{{24, 1}, {48, 2}}},
		{"reduced parts", "reducescatter", collective.Uint8, 3, []int{10}, []size{{9, 3}}},
		{"halves", "sendrecv", collective.Float16, 2, []int{5}, []size{{4, 2}}},
		{"none", "allreduce", collective.Float32, 2, nil, nil},
	} {
		var got []size
		for _, r := range run(t, collectivetest.Local(t, c.ranks), bench.Spec{Op: c.op, DType: c.dtype, Reduction: collective.Sum, Sizes: c.sizes, Iterations: 1, Check: true}) {
			require.Zero(t, r.Wrong(), c.name)
			got = append(got, size{r.Size, r.Count})
		}
		require.Equal(t, c.want, got, c.name)
	}
}

// A row contains what was measured, and no field that its operation does not have.
func TestRowsDescribeTheCall(t *testing.T) {
	for _, c := range []struct {
		op        string
		reduction collective.Op
		root      int
		inside    bool
		planned   bool
	}{
		{"allreduce", collective.Max, -1, true, true},
		{"reducescatter", collective.Max, -1, true, false},
		{"allgather", 0, -1, true, false},
		{"broadcast", 0, 1, true, false},
		{"reduce", collective.Max, 1, true, false},
		{"gather", 0, 1, true, false},
		{"scatter", 0, 1, true, false},
		{"alltoall", 0, -1, false, false},
		{"sendrecv", 0, -1, false, false},
	} {
		for _, check := range []bool{true, false} {
			s := bench.Spec{Op: c.op, DType: collective.Int32, Reduction: collective.Max, Root: 1, Sizes: []int{96}, Iterations: 3, Check: check}
			r := run(t, collectivetest.Local(t, 3), s)[0]
			require.Equal(t, c.op, r.Op)
			require.Equal(t, collective.Int32, r.DType)
			require.Equal(t, 3, r.Ranks)
			require.Equal(t, c.reduction, r.Reduction, c.op)
			require.Equal(t, c.root, r.Root, c.op)
			require.Equal(t, c.inside, r.In != nil, c.op)
			require.Equal(t, c.planned, r.Plan.Method != 0, c.op)
			require.Equal(t, c.planned, r.Plan.Why != "", c.op)
			for _, timing := range []*bench.Timing{r.Out, r.Main()} {
				require.Equal(t, 3, timing.Iterations, "the warm-up does not count")
				require.Equal(t, check, timing.Read >= timing.Median && timing.Read > 0, "%s: Read is only known with checks", c.op)
				require.Equal(t, check, timing.Wrong == 0)
			}
		}
	}
}

// Each gets every row on every rank, when it is measured.
func TestEachGetsRowsAsTheyCome(t *testing.T) {
	collectivetest.Run(t, collectivetest.Local(t, 2), func(ctx context.Context, g *collective.Group) {
		var got []bench.Row
		s := bench.Spec{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{4, 64, 256}, Iterations: 1}
		s.Each = func(r bench.Row) { got = append(got, r) }
		rows, err := bench.Run(ctx, g, s)
		assert.NoError(t, err)
		assert.Equal(t, rows, got)
		assert.Len(t, got, 3)
	})
}
