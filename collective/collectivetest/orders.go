package collectivetest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// TestOrders is the conformance suite of AnyOrder. It tests each method that folds in
// an order of its own, and the planned one, on one host and on several:
//
//   - Sums of floats are correct within rounding, and have the same bits on every
//     rank and in the next run.
//   - Integers, Min and Max are exact.
//   - 16-bit floats keep ring order, because they are rounded once.
func TestOrders(t *testing.T, connect Connector) {
	for _, m := range []schedule.Method{schedule.Halving, schedule.Tree, schedule.Hierarchical, 0} {
		name := "planned"
		if m != 0 {
			name = m.String()
		}
		for _, size := range sizes() {
			for spread, host := range map[string]func(rank int) int{
				"one host": func(int) int { return 0 },
				"pairs":    func(rank int) int { return rank / 2 },
				"uneven":   func(rank int) int { return min(rank, 1) },
			} {
				t.Run(fmt.Sprintf("%s, size %d, %s", name, size, spread), func(t *testing.T) {
					testOrder(t, anyOrdered(t, connect, m, size, host))
				})
			}
		}
	}
}

// anyOrdered makes groups whose ranks are on the hosts that host returns.
func anyOrdered(t *testing.T, connect Connector, m schedule.Method, size int, host func(rank int) int) []*collective.Group {
	views, transports := connect(t, size)
	engines := make([]collective.Engine, size)
	for r := range engines {
		v := views[r]
		v.Members = slices.Clone(v.Members)
		for i := range v.Members {
			v.Members[i].Host = collective.HostID(1 + host(i))
		}
		views[r], engines[r] = v, collective.ByMethod(v, transports[r], m)
	}
	return OverEngines(t, views, engines, collective.Options{Order: collective.AnyOrder})
}

func testOrder(t *testing.T, groups []*collective.Group) {
	for _, n := range light(len(groups), 0, 1, len(groups)-1, 5000, 150_000) {
		checkNear[float32](t, groups, n, collective.Sum, 1e-6)
		if n > 20_000 {
			continue
		}
		checkNear[float64](t, groups, n, collective.Mean, 1e-14)
		checkNear[float32](t, groups, n, collective.Prod, 1e-6)
		checkReduce[float32](t, groups, n, collective.Max)
		checkReduce[float64](t, groups, n, collective.Min)
		checkReduce[int64](t, groups, n, collective.Sum)
		checkReduce[int32](t, groups, n, collective.Mean)
		checkReduce[uint8](t, groups, n, collective.Prod)
		checkHalves(t, groups, n, collective.BFloat16, collective.Sum)
	}
	Run(t, groups, func(ctx context.Context, g *collective.Group) { assert.NoError(t, g.Barrier(ctx)) })
}

// checkNear compares the result with ring order, within tolerance for each operand,
// and the bits of all ranks in two runs.
func checkNear[T float32 | float64](t *testing.T, groups []*collective.Group, n int, op collective.Op, tolerance float64) {
	want := Reduced[T](len(groups), n, 0, op)
	var first [][]T
	for range 2 {
		got := make([][]T, len(groups))
		Run(t, groups, func(ctx context.Context, g *collective.Group) {
			s := Operands[T](g.Rank(), n)
			assert.NoError(t, g.AllReduce(ctx, collective.Of(s).At(1000), op))
			got[g.Rank()] = s
		})
		first = append(first, got[0])
		for r, g := range groups {
			checkSame(t, g, got[0], got[r], "as rank 0")
		}
	}
	checkSame(t, groups[0], first[0], first[1], "as in the first run")
	most := tolerance * float64(len(groups))
	for i := range want {
		if math.Abs(float64(first[0][i]-want[i])) > most {
			assert.Fail(t, "wrong result", "%v of %d: element %d: want %v within %g, got %v", op, n, i, want[i], most, first[0][i])
			return
		}
	}
}
