package bench_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// All ranks measure the same ways and get the same table, and each size then uses its
// entry.
func TestTune(t *testing.T) {
	for _, order := range []collective.Order{collective.RingOrder, collective.AnyOrder} {
		views, transports := collective.Local(3)
		groups := collectivetest.Groups(t, views, transports, collective.Options{Order: order})
		var mu sync.Mutex
		every := map[int][]bench.Tuned{}
		collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
			told := 0
			all, err := bench.Tune(ctx, g, []int{4, 1000, 200_000, 1<<20 + 4}, func(bench.Tuned) { told++ })
			assert.NoError(t, err)
			assert.Equal(t, 4, told)
			mu.Lock()
			every[g.Rank()] = all
			mu.Unlock()
			table := bench.TableOf(g.Size(), all)
			assert.NoError(t, g.Tune(ctx, table))
			for _, e := range table.Entries {
				v := collective.Of(make([]float32, e.Bytes/4))
				p := g.PlanAllReduce(v, collective.Sum)
				assert.Equal(t, e.Method, p.Method)
				assert.Equal(t, e.Measured, p.Predicted)
			}
		})
		require.Equal(t, every[0], every[1])
		require.Equal(t, every[0], every[2])
		for _, tuned := range every[0] {
			methods := map[schedule.Method]int{}
			for i, w := range tuned.Ways {
				methods[w.Method]++
				require.Positive(t, w.Measured)
				require.Positive(t, w.Predicted)
				require.True(t, i == 0 || w.Measured >= tuned.Ways[i-1].Measured)
				require.True(t, order == collective.AnyOrder || w.Method.RingOrdered(), "%v", w.Method)
			}
			require.Equal(t, order == collective.AnyOrder, methods[schedule.Tree] > 0)
			for _, whole := range []schedule.Method{schedule.OneShot, schedule.Bruck, schedule.Collected} { // only one segment
				want := 1
				if tuned.Bytes > 1<<20 { // size times as much memory in a rank, and never the fastest
					want = 0
				}
				require.Equal(t, want, methods[whole], "%v of %d bytes", whole, tuned.Bytes)
			}
		}
	}
}
