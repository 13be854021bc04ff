package bench_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// run runs a Spec on all groups and returns the rows, which must be equal on every
// rank.
func run(t *testing.T, groups []*collective.Group, s bench.Spec) []bench.Row {
	t.Helper()
	every := make([][]bench.Row, len(groups))
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		var err error
		every[g.Rank()], err = bench.Run(ctx, g, s)
		assert.NoError(t, err)
	})
	for _, rows := range every[1:] {
		require.Equal(t, every[0], rows)
	}
	return every[0]
}

func TestEveryOperationIsRight(t *testing.T) {
	for _, op := range bench.Operations() {
		for _, ranks := range []int{1, 2, 3, 5} {
			s := bench.Spec{Op: op, DType: collective.Float32, Reduction: collective.Sum, Root: ranks - 1, Sizes: []int{1, 4, 16, 100_000}, Warmup: 1, Iterations: 2, Check: true}
			if s.Validate(ranks) != nil {
				continue
			}
			told := 0
			groups := collectivetest.Local(t, ranks)
			rows := run(t, groups, s)
			for _, r := range rows {
				require.Zero(t, r.Wrong(), "%s of %d, %d bytes", op, ranks, r.Size)
				require.Equal(t, 2, r.Main().Iterations)
				require.Positive(t, r.Main().Median)
				require.GreaterOrEqual(t, r.Main().P99, r.Main().Median)
				require.Equal(t, slices.Contains([]string{"broadcast", "reduce", "gather", "scatter"}, op), r.Root >= 0)
				require.Zero(t, r.Size%(r.Count*4))
				told++
			}
			require.InDelta(t, 3, told, 1, "equal sizes are measured once")
			require.LessOrEqual(t, rows[len(rows)-1].Size, 100_000)
			require.Greater(t, rows[len(rows)-1].Size, 100_000-4*ranks)
		}
	}
}

func TestEveryTypeAndReductionIsRight(t *testing.T) {
	groups := collectivetest.Local(t, 3)
	for _, op := range bench.Operations() {
		for dtype := collective.Float32; dtype <= collective.Uint8; dtype++ {
			for reduction := collective.Sum; reduction <= collective.Prod; reduction++ {
				s := bench.Spec{Op: op, DType: dtype, Reduction: reduction, Sizes: []int{100, 300_000}, Iterations: 1, Check: true}
				for _, r := range run(t, groups, s) {
					require.Zero(t, r.Wrong(), "%s %v of %v, %d bytes", op, reduction, dtype, r.Size)
				}
			}
		}
	}
}

// A forger changes one byte of some messages to a rank.
type forger struct {
	collective.Transport
	kind  collective.Kind
	times *atomic.Int64 // messages still to change
}

func (f *forger) Recv(ctx context.Context, from int, h *collective.Header, parts [][]byte) error {
	err := f.Transport.Recv(ctx, from, h, parts)
	if err == nil && h.Call.Kind == f.kind && h.Call.Count == 1000 && len(parts) > 0 && len(parts[0]) > 0 && f.times.Add(-1) >= 0 {
		parts[0][len(parts[0])-1] ^= 1
	}
	return err
}

// A wrong result counts once for every element, rank and iteration.
func TestWrongResultsAreCounted(t *testing.T) {
	for _, c := range []struct {
		op   string
		kind collective.Kind
	}{{"allreduce", collective.KindAllReduce}, {"broadcast", collective.KindBroadcast}, {"allgather", collective.KindAllGather}} {
		for _, check := range []bool{true, false} {
			views, transports := collective.Local(3)
			var times atomic.Int64
			times.Store(3)
			for r := range transports { // so that all of them use messages
				transports[r] = &forger{transports[r], c.kind, new(atomic.Int64)}
			}
			transports[1].(*forger).times = &times
			groups := collectivetest.Groups(t, views, transports, collective.Options{})
			size := 4000
			if c.op == "allgather" {
				size *= 3
			}
			rows := run(t, groups, bench.Spec{Op: c.op, DType: collective.Int32, Reduction: collective.Sum, Sizes: []int{size}, Iterations: 4, Check: check})
			require.Len(t, rows, 1)
			require.Negative(t, times.Load(), "%s: the messages were there", c.op)
			if !check {
				require.EqualValues(t, -1, rows[0].Out.Wrong)
				require.Zero(t, rows[0].Wrong())
				continue
			}
			// Rank 1 may have passed the wrong bytes on, at most to all others.
			require.GreaterOrEqual(t, rows[0].Wrong(), int64(1), c.op)
			require.LessOrEqual(t, rows[0].Wrong(), int64(9), c.op)
		}
	}
}

func TestAdaptiveIterations(t *testing.T) {
	var told []bench.Row
	s := bench.Spec{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{4, 16 << 20}, Check: true}
	groups := collectivetest.Local(t, 2)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		mine := s
		if g.Rank() == 0 {
			mine.Each = func(r bench.Row) { told = append(told, r) }
		}
		_, err := bench.Run(ctx, g, mine)
		assert.NoError(t, err)
	})
	require.Len(t, told, 2)
	small, large := told[0].In.Iterations, told[1].In.Iterations
	require.Greater(t, small, large)
	require.GreaterOrEqual(t, large, 5)
	require.LessOrEqual(t, small, 20_000)
}

func TestSpecsThatCannotBeMeasured(t *testing.T) {
	fine := bench.Spec{Op: "broadcast", DType: collective.Float32, Root: 1}
	require.NoError(t, fine.Validate(2))
	for _, size := range []int{-8, 0, 1 << 60} {
		s := fine
		s.Sizes = []int{size}
		_, err := bench.Run(t.Context(), collectivetest.Local(t, 2)[0], s)
		require.ErrorContains(t, err, fmt.Sprintf("bench: a size of %d bytes cannot be measured", size))
	}
	for says, s := range map[string]bench.Spec{
		`unknown operation "shout"; use one of allgather, allreduce`: {Op: "shout", DType: collective.Float32},
		"the root must be a rank from 0 to":                          {Op: "broadcast", DType: collective.Float32, Root: 2},
		"reduction op(9) is not known":                               {Op: "allreduce", DType: collective.Float32, Reduction: 9},
		"give 0 to 1000":                                             {Op: "allgather", DType: collective.Float32, Garbage: 1001},
		"neither may be negative":                                    {Op: "allgather", DType: collective.Float32, Iterations: -1},
		"cannot be measured for -1s":                                 {Op: "allgather", DType: collective.Float32, Time: -time.Second},
		fmt.Sprintf("vectors of %v", collective.DType(0)):            {Op: "allgather"},
	} {
		require.ErrorContains(t, s.Validate(2), says)
		_, err := bench.Run(t.Context(), collectivetest.Local(t, 2)[0], s)
		require.ErrorContains(t, err, says)
	}
}

// Ranks with different Specs return an error and measure nothing.
func TestDifferentSpecs(t *testing.T) {
	collectivetest.Run(t, collectivetest.Local(t, 3), func(ctx context.Context, g *collective.Group) {
		s := bench.Spec{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{4}, Iterations: 1}
		if g.Rank() == 2 {
			s.DType, s.Iterations = collective.Float64, 2
		}
		rows, err := bench.Run(ctx, g, s)
		assert.Empty(t, rows)
		var differ *bench.SpecError
		if assert.ErrorAs(t, err, &differ) {
			assert.Equal(t, &bench.SpecError{Fields: []string{"types", "iterations"}, Ranks: []int{2}, Names: []string{g.View().Name(2)}}, differ)
			assert.ErrorContains(t, err, "differs from rank 0 in types and iterations")
		}
	})
}

// Sums and products of 16-bit floats stay exact, even in groups so large that they
// could exceed the type's exact range.
func TestHalvesOfManyRanks(t *testing.T) {
	groups := collectivetest.Local(t, 40)
	for _, dtype := range []collective.DType{collective.Float16, collective.BFloat16} {
		for reduction := collective.Sum; reduction <= collective.Prod; reduction++ {
			for _, r := range run(t, groups, bench.Spec{Op: "allreduce", DType: dtype, Reduction: reduction, Sizes: []int{4_000}, Iterations: 1, Check: true}) {
				require.Zero(t, r.Wrong(), "%v of %v", reduction, dtype)
			}
		}
	}
}

// With a Time, even a small size is measured for that long.
func TestTimeOfASize(t *testing.T) {
	begin := time.Now()
	run(t, collectivetest.Local(t, 2), bench.Spec{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{4}, Time: 300 * time.Millisecond})
	require.GreaterOrEqual(t, time.Since(begin), 600*time.Millisecond, "two placements")
}

// Garbage is made throughout the run, and results stay correct.
func TestGarbage(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rows := run(t, collectivetest.Local(t, 2), bench.Spec{
		Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{4096}, Time: 100 * time.Millisecond, Check: true, Garbage: 20,
	})
	runtime.ReadMemStats(&after)
	require.Zero(t, rows[0].Wrong())
	require.Greater(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20), "two ranks owe 2 * 20 * 64 KB a ms")
}

// A rank that fails ends the run of all ranks, with an error that names it.
func TestFailure(t *testing.T) {
	s := bench.Spec{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{4}, Iterations: 1_000_000}
	collectivetest.Run(t, collectivetest.Local(t, 2), func(ctx context.Context, g *collective.Group) {
		if g.Rank() == 1 {
			g.Abort(errors.New("the disk is on fire"))
			return
		}
		_, err := bench.Run(ctx, g, s)
		var lost *collective.RankError
		if assert.ErrorAs(t, err, &lost) {
			assert.Equal(t, 1, lost.Rank)
		}
	})
}

func ExampleRun() {
	views, transports := collective.Local(1)
	g := collective.NewGroup(views[0], collective.OverTransport(views[0], transports[0]), collective.Options{})
	defer g.Close()
	sizes, _ := bench.Sweep(4, 1024, 16)
	rows, err := bench.Run(context.Background(), g, bench.Spec{
		Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: sizes, Iterations: 3, Check: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range rows {
		fmt.Println(r.Size, r.Count, r.Wrong())
	}
	// Output:
	// 4 1 0
	// 64 16 0
	// 1024 256 0
}
