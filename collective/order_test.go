package collective_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

func TestLocalOrders(t *testing.T) { collectivetest.TestOrders(t, byMessages) }

func TestParseOrder(t *testing.T) {
	for _, o := range []collective.Order{collective.RingOrder, collective.AnyOrder} {
		got, err := collective.ParseOrder(o.String())
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
	_, err := collective.ParseOrder("tree")
	require.ErrorContains(t, err, "ring or any")
}

// Ranks with different orders, or with different calls at the same time, get an error
// and never wait for each other.
func TestOrdersThatDiffer(t *testing.T) {
	for _, m := range []schedule.Method{schedule.Halving, schedule.Tree, schedule.Hierarchical} {
		for odd := range 5 {
			for name, call := range map[string]func(ctx context.Context, g *collective.Group, s []float32) error{
				"another operation": func(ctx context.Context, g *collective.Group, _ []float32) error { return g.Barrier(ctx) },
				"another count": func(ctx context.Context, g *collective.Group, s []float32) error {
					return collective.AllReduce(ctx, g, s[:7], collective.Sum)
				},
				"another method": func(ctx context.Context, g *collective.Group, s []float32) error {
					return collective.AllReduce(ctx, g, s, collective.Sum)
				},
			} {
				t.Run(m.String()+", "+name, func(t *testing.T) {
					views, transports := collective.Local(5)
					engines := make([]collective.Engine, 5)
					for r := range engines {
						views[r].Members = slices.Clone(views[r].Members)
						for i := range views[r].Members {
							views[r].Members[i].Host = collective.HostID(1 + i/2)
						}
						force := m
						if r == odd {
							force = schedule.Direct
						}
						engines[r] = collective.ByMethod(views[r], transports[r], force)
					}
					groups := collectivetest.OverEngines(t, views, engines, collective.Options{Order: collective.AnyOrder})
					collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
						s := make([]float32, 100)
						if g.Rank() == odd {
							assert.ErrorIs(t, call(ctx, g, s), collective.ErrMismatch)
							return
						}
						assert.ErrorIs(t, collective.AllReduce(ctx, g, s, collective.Sum), collective.ErrMismatch)
					})
				})
			}
		}
	}
}

// All ranks use what rank 0 measured. Under ring order they use only the measurements
// of methods that keep it.
func TestTune(t *testing.T) {
	table := &schedule.Table{Ranks: 3, Entries: []schedule.Entry{
		{Bytes: 400, Method: schedule.Direct, Segment: 64 << 10, Measured: 30 * time.Microsecond},
		{Bytes: 400_000, Method: schedule.Tree, Segment: 32 << 10, Measured: 3 * time.Millisecond},
	}}
	for order, large := range map[collective.Order]schedule.Method{collective.RingOrder: schedule.Direct, collective.AnyOrder: schedule.Tree} {
		views, transports := byMessages(t, 3)
		groups := collectivetest.Groups(t, views, transports, collective.Options{Order: order})
		collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
			small, big := collective.Of(make([]float32, 90)), collective.Of(make([]float32, 120_000))
			assert.Equal(t, schedule.Bruck, g.PlanAllReduce(small, collective.Sum).Method)
			mine := table
			if g.Rank() != 0 {
				mine = nil
			}
			assert.NoError(t, g.Tune(ctx, mine))
			p := g.PlanAllReduce(small, collective.Sum)
			assert.Equal(t, schedule.Direct, p.Method)
			assert.Equal(t, 30*time.Microsecond, p.Predicted)
			assert.Equal(t, 1, p.Streams)
			assert.Equal(t, 1, g.Streams())
			p = g.PlanAllReduce(big, collective.Sum)
			assert.Equal(t, large, p.Method)
			assert.Equal(t, large == schedule.Tree, p.Predicted > 3*time.Millisecond, "the table's time is that of its method")
			assert.NoError(t, g.AllReduce(ctx, big, collective.Sum))
			halves := collective.Of16(make([]uint16, 200_000), collective.BFloat16)
			p = g.PlanAllReduce(halves, collective.Sum)
			assert.Less(t, p.Predicted, 3*time.Millisecond)
			assert.Equal(t, schedule.Direct, p.Method, "what travels as partial results is rounded again and again")

			if g.Rank() != 0 {
				mine = table
			} else {
				mine = nil
			}
			assert.NoError(t, g.Tune(ctx, mine))
			assert.Equal(t, schedule.Bruck, g.PlanAllReduce(small, collective.Sum).Method)
		})
	}
}

// Ranks of one process reduce in shared memory under either order, unless a measurement
// says that another method is faster. Plans for messages use the costs of the
// in-process transport.
func TestLocalPlan(t *testing.T) {
	for _, order := range []collective.Order{collective.RingOrder, collective.AnyOrder} {
		views, transports := collective.Local(3)
		groups := collectivetest.Groups(t, views, transports, collective.Options{Order: order})
		collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
			s := g.Situation()
			assert.True(t, s.Shared)
			assert.Equal(t, schedule.InProcess, s.Near)
			assert.Contains(t, s.Candidates(), schedule.Shared)
			assert.Contains(t, s.Candidates(), schedule.Ring)
			for n := 1; n < 1<<22; n *= 8 {
				assert.Equal(t, schedule.Shared, g.PlanAllReduce(collective.Of(make([]float32, n)), collective.Sum).Method)
			}
			assert.NoError(t, g.Tune(ctx, schedule.Only(3, schedule.Direct, 64<<10)))
			v := collective.Of(make([]float32, 100_000))
			assert.Equal(t, schedule.Direct, g.PlanAllReduce(v, collective.Sum).Method)
			assert.NoError(t, g.AllReduce(ctx, v, collective.Sum))
			assert.NoError(t, g.Barrier(ctx))

			sub, err := g.Sub(ctx, 0, 0)
			if assert.NoError(t, err) {
				assert.False(t, sub.Situation().Shared)
				assert.Equal(t, schedule.InProcess, sub.Situation().Near)
				assert.NoError(t, sub.Close())
			}
		})
	}
}
