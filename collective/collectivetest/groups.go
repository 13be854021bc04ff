package collectivetest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// A Maker makes n connected groups over the transport under test, and closes them at
// the end of the test.
type Maker func(t testing.TB, n int) []*collective.Group

// TestGroup is the conformance suite of the operations. It compares every result
// with the definition, bit for bit.
func TestGroup(t *testing.T, make Maker) {
	for _, size := range sizes() {
		TestSize(t, make, size)
	}
	t.Run("mismatch", func(t *testing.T) { testMismatch(t, make) })
	t.Run("concurrent", func(t *testing.T) { testConcurrent(t, make) })
	t.Run("cancelled", func(t *testing.T) { testCancelled(t, make) })
	t.Run("leaves", func(t *testing.T) { testLeaves(t, make) })
	t.Run("aborts", func(t *testing.T) { testAborts(t, make) })
}

// TestSize is the part of TestGroup in which no call fails, for one number of ranks.
func TestSize(t *testing.T, make Maker, size int) {
	t.Run(fmt.Sprintf("size %d", size), func(t *testing.T) {
		groups := make(t, size)
		t.Run("AllReduce", func(t *testing.T) { testAllReduce(t, groups, size <= 8) })
		t.Run("cuts", func(t *testing.T) { testCuts(t, groups) })
		t.Run("Broadcast", func(t *testing.T) { testBroadcast(t, groups) })
		t.Run("AllGather", func(t *testing.T) { testAllGather(t, groups) })
		t.Run("ReduceScatter", func(t *testing.T) { testReduceScatter(t, groups) })
		t.Run("Reduce", func(t *testing.T) { testReduce(t, groups) })
		t.Run("pieces", func(t *testing.T) { testPieces(t, groups) })
		t.Run("Gather", func(t *testing.T) { testGather(t, groups) })
		t.Run("AllToAll", func(t *testing.T) { testAllToAll(t, groups) })
		t.Run("Blocks", func(t *testing.T) { testBlocks(t, groups) })
		t.Run("Send", func(t *testing.T) { testSend(t, groups) })
		t.Run("Sub", func(t *testing.T) { testSub(t, groups) })
		t.Run("asynchronous", func(t *testing.T) { testAsync(t, groups) })
		t.Run("ReduceScatterAsync", func(t *testing.T) { testReduceScatterAsync(t, groups) })
		t.Run("Barrier", func(t *testing.T) { testBarrier(t, groups) })
		t.Run("arguments", func(t *testing.T) { testArguments(t, groups) })
	})
}

// A Connector makes the views and connected transports of n ranks.
type Connector func(t testing.TB, n int) ([]collective.View, []collective.Transport)

// TestMethods forces AllReduce to use each method, even at lengths for which it would
// not be chosen. The bits must be the same, in one call and in many.
func TestMethods(t *testing.T, connect Connector) {
	for _, m := range []schedule.Method{schedule.OneShot, schedule.Bruck, schedule.Collected, schedule.Direct, schedule.Ring} {
		t.Run(m.String(), func(t *testing.T) {
			for _, size := range sizes() {
				if size == 4 || size == 6 {
					continue // 5 and 8 cover the same cases, and TestGroup has these
				}
				t.Run(fmt.Sprintf("size %d", size), func(t *testing.T) {
					views, transports := connect(t, size)
					engines := make([]collective.Engine, size)
					for r := range engines {
						engines[r] = collective.ByMethod(views[r], transports[r], m)
					}
					groups := OverEngines(t, views, engines, collective.Options{})
					few := m == schedule.OneShot || m == schedule.Bruck || m == schedule.Collected // bytes: these methods keep the vectors of all ranks
					testAllReduce(t, groups, !few && (size == 3 || size == 8))
					testCuts(t, groups)
				})
			}
		})
	}
}

// sizes returns the numbers of ranks to test.
func sizes() []int {
	if raced {
		return []int{1, 2, 3, 7}
	}
	return []int{1, 2, 3, 4, 5, 6, 7, 8}
}

// longest is enough for several segments of several chunks.
const longest = 1 << 20

// lengths returns the numbers of elements to test with size ranks: none, one, one
// fewer than ranks, as many as ranks, so few blocks that some ranks have none, and
// enough for several segments.
func lengths(size int) []int { return light(size, 0, 1, size-1, size, 10_001, 300_000) }

// light drops the long lengths for most sizes, and under the race detector for all but one: it makes
// the tests' own arithmetic slow, too.
func light(size int, lengths ...int) []int {
	if size == 3 || !raced && (size == 2 || size == 7) {
		return lengths
	}
	return slices.DeleteFunc(lengths, func(n int) bool { return n > 20_000 })
}

func testAllReduce(t *testing.T, groups []*collective.Group, long bool) {
	if long && (!raced || len(groups) == 3) {
		checkReduce[float32](t, groups, longest, collective.Sum)
		checkHalves(t, groups, longest, collective.Float16, collective.Max)
		checkReduce[int64](t, groups, longest, collective.Prod)
	}
	for _, n := range lengths(len(groups)) {
		if n > 100_000 {
			checkReduce[float64](t, groups, n, collective.Mean)
			continue
		}
		for _, op := range []collective.Op{collective.Sum, collective.Mean, collective.Min, collective.Max, collective.Prod} {
			checkReduce[float32](t, groups, n, op)
			checkReduce[float64](t, groups, n, op)
			checkHalves(t, groups, n, collective.Float16, op)
			checkHalves(t, groups, n, collective.BFloat16, op)
			checkReduce[int64](t, groups, n, op)
			checkReduce[int32](t, groups, n, op)
			checkReduce[uint8](t, groups, n, op)
		}
	}
}

func checkReduce[T collective.Element](t *testing.T, groups []*collective.Group, n int, op collective.Op) {
	want := Reduced[T](len(groups), n, 0, op)
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		s := Operands[T](g.Rank(), n)
		assert.NoError(t, collective.AllReduce(ctx, g, s, op))
		checkSame(t, g, want, s, fmt.Sprintf("%v of %d", op, n))
	})
}

// checkHalves is checkReduce for 16-bit floats, which are folded in float32 and
// rounded once.
func checkHalves(t *testing.T, groups []*collective.Group, n int, dtype collective.DType, op collective.Op) {
	operands, want := halves(len(groups), n, 0, dtype, op)
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		got := operands[g.Rank()]
		assert.NoError(t, g.AllReduce(ctx, collective.Of16(got, dtype), op))
		if i := different(collective.Of16(want, dtype), collective.Of16(got, dtype)); i >= 0 {
			assert.Fail(t, "wrong result", "%v %v of %d: rank %d, element %d: want %#x, got %#x", dtype, op, n, g.Rank(), i, want[i], got[i])
		}
	})
}

// checkSame is assert.Equal without its cost for long slices. It distinguishes -0 from 0.
func checkSame[T collective.Element](t *testing.T, g *collective.Group, want, got []T, what string) {
	if !assert.Equal(t, len(want), len(got), what) {
		return
	}
	if i := different(collective.Of(want), collective.Of(got)); i >= 0 {
		assert.Fail(t, "wrong result", "%s: rank %d of %d, element %d: want %v, got %v", what, g.Rank(), g.Size(), i, want[i], got[i])
	}
}

// different returns the index of the first element whose bits differ between two vectors of the
// same type and length, or -1.
func different(v, w collective.Vector) int {
	a, _ := v.Host()
	b, _ := w.Host()
	if bytes.Equal(a, b) {
		return -1
	}
	at := 0
	for a[at] == b[at] {
		at++
	}
	return at / v.DType().Size()
}

// testCuts reduces one arena in one call and in several, cut at block borders, next
// to them, or anywhere. The bits must be the same.
func testCuts(t *testing.T, groups []*collective.Group) {
	const n = 100_000
	want := Reduced[float32](len(groups), n, 0, collective.Sum)
	every := [][]int{{0, n}, {0, 1, n}, {0, 4095, 4097, 50_000, n}}
	rng := rand.New(rand.NewPCG(uint64(len(groups)), 7))
	for range 7 {
		cuts := []int{0, n}
		for range 1 + rng.IntN(7) {
			cuts = append(cuts, rng.IntN(n+1))
		}
		slices.Sort(cuts)
		every = append(every, cuts)
	}
	for _, cuts := range every {
		Run(t, groups, func(ctx context.Context, g *collective.Group) {
			s := Operands[float32](g.Rank(), n)
			arena := collective.Of(s)
			for i := 1; i < len(cuts); i++ {
				assert.NoError(t, g.AllReduce(ctx, arena.Slice(cuts[i-1], cuts[i]), collective.Sum))
			}
			checkSame(t, g, want, s, fmt.Sprint("cut at ", cuts))
		})
	}
}

func testBroadcast(t *testing.T, groups []*collective.Group) {
	for _, n := range lengths(len(groups)) {
		for _, root := range []int{0, len(groups) - 1, len(groups) / 2} {
			want := Operands[float64](root, n)
			Run(t, groups, func(ctx context.Context, g *collective.Group) {
				s := Operands[float64](g.Rank(), n)
				assert.NoError(t, collective.Broadcast(ctx, g, s, root))
				checkSame(t, g, want, s, fmt.Sprintf("%d from %d", n, root))
			})
		}
	}
}

func testAllGather(t *testing.T, groups []*collective.Group) {
	for _, n := range lengths(len(groups)) {
		var want []int64
		for r := range groups {
			want = append(want, Operands[int64](r, n)...)
		}
		Run(t, groups, func(ctx context.Context, g *collective.Group) {
			dst := make([]int64, n*g.Size())
			assert.NoError(t, collective.AllGather(ctx, g, dst, Operands[int64](g.Rank(), n)))
			checkSame(t, g, want, dst, fmt.Sprint(n))
		})
	}
}

// testBarrier makes every rank count itself before each barrier. After it, all must
// have been counted.
func testBarrier(t *testing.T, groups []*collective.Group) {
	var mu sync.Mutex
	count := 0
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		for round := 1; round <= 20; round++ {
			mu.Lock()
			count++
			mu.Unlock()
			assert.NoError(t, g.Barrier(ctx))
			mu.Lock()
			assert.GreaterOrEqual(t, count, round*g.Size())
			mu.Unlock()
			assert.NoError(t, g.Barrier(ctx))
		}
	})
}

// testArguments makes mistakes that are detected before anything is sent, so the
// group stays usable.
func testArguments(t *testing.T, groups []*collective.Group) {
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		s := make([]float32, 3)
		assert.ErrorContains(t, collective.Broadcast(ctx, g, s, g.Size()), "choose a root from 0 to")
		assert.Error(t, collective.Broadcast(ctx, g, s, -1))
		assert.ErrorContains(t, collective.AllGather(ctx, g, make([]float32, 3*g.Size()+1), s), "do not match")
		assert.Error(t, collective.AllReduce(ctx, g, s, collective.Op(99)))
		assert.NoError(t, g.Barrier(ctx))
		assert.ErrorIs(t, g.AllReduce(ctx, collective.OnDevice(0, 4096, 1, collective.Float32), collective.Sum), collective.ErrUnsupported)
		assert.Error(t, g.Broadcast(ctx, collective.Vector{}, 0))
		assert.Error(t, g.AllReduce(ctx, collective.Of(s).At(-1), collective.Sum))
		if end := uint64(1) << 32; end < math.MaxInt {
			assert.Error(t, g.AllReduce(ctx, collective.Of(s).At(int(end)), collective.Sum))
			assert.NoError(t, g.AllReduce(ctx, collective.Of(s).At(int(end-2)), collective.Sum))
		}
		assert.NoError(t, g.Barrier(ctx))
	})
}
