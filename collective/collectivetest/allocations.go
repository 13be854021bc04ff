package collectivetest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective"
)

// TestAllocations makes calls of one element and of many between two ranks. In the
// steady state both ranks together may allocate at most twice per call.
func TestAllocations(t *testing.T, connect Maker) {
	if raced {
		t.Skip("the race detector allocates")
	}
	for _, n := range []int{1, 256 << 10} {
		groups := connect(t, 2)
		if got := allocations(t, groups, n); got > 2 {
			t.Errorf("AllReduce of %d elements allocates %v times", n, got)
		}
	}
}

// allocations returns how often both ranks together allocate per call. The runtime counts
// for the whole process, so it measures several times and returns the least: on a loaded
// machine heartbeats and the end of earlier tests fall into some of the measurements.
func allocations(t testing.TB, groups []*collective.Group, n int) float64 {
	const measurements, runs = 5, 20
	least := math.Inf(1)
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		s := make([]float32, n)
		call := func() { assert.NoError(t, collective.AllReduce(ctx, g, s, collective.Sum)) }
		for range measurements {
			if g.Rank() == 0 {
				least = min(least, testing.AllocsPerRun(runs, call))
				continue
			}
			for range runs + 1 { // AllocsPerRun warms up once
				call()
			}
		}
	})
	return least
}

// BenchmarkAllReduce measures two ranks in one process, from 4 B to 64 MB.
func BenchmarkAllReduce(b *testing.B, connect Maker) {
	for _, bytes := range []int{4, 4 << 10, 64 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprint(bytes), func(b *testing.B) {
			groups := connect(b, 2)
			vectors := [2][]float32{make([]float32, bytes/4), make([]float32, bytes/4)}
			reduce := func(times int) {
				Run(b, groups, func(ctx context.Context, g *collective.Group) {
					s := vectors[g.Rank()]
					for range times {
						assert.NoError(b, collective.AllReduce(ctx, g, s, collective.Sum))
					}
				})
			}
			reduce(2) // allocates memory
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			b.ResetTimer()
			reduce(b.N)
		})
	}
}

// BenchmarkSmallCalls measures calls of 8 B per rank between two ranks in one process.
func BenchmarkSmallCalls(b *testing.B, connect Maker) {
	type vector = collective.Vector
	for name, call := range map[string]func(ctx context.Context, g *collective.Group, one, all, other vector) error{
		"AllGather": func(ctx context.Context, g *collective.Group, one, all, _ vector) error {
			return g.AllGather(ctx, all, one)
		},
		"AllToAll": func(ctx context.Context, g *collective.Group, _, all, other vector) error {
			return g.AllToAll(ctx, other, all)
		},
		"Broadcast": func(ctx context.Context, g *collective.Group, one, _, _ vector) error {
			return g.Broadcast(ctx, one, 0)
		},
		"ReduceScatter": func(ctx context.Context, g *collective.Group, one, all, _ vector) error {
			return g.ReduceScatter(ctx, one, all, collective.Sum)
		},
	} {
		b.Run(name, func(b *testing.B) {
			groups := connect(b, 2)
			Run(b, groups, func(ctx context.Context, g *collective.Group) {
				one, all, other := collective.Of(make([]float32, 2)), collective.Of(make([]float32, 4)), collective.Of(make([]float32, 4))
				for range b.N {
					assert.NoError(b, call(ctx, g, one, all, other))
				}
			})
		})
	}
}
