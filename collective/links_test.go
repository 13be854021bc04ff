package collective_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// messagesOnly is a Transport without abilities.
type messagesOnly struct{ collective.Transport }

// measured returns the groups of n ranks after MeasureLinks, and what each got.
func measured(t *testing.T, n int, policy func(rank int) collective.LinkPolicy, wrap func(collective.Transport) collective.Transport) ([]*collective.Group, []schedule.Cost) {
	views, transports := collective.Local(n)
	groups, costs := make([]*collective.Group, n), make([]schedule.Cost, n)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			e := collective.OverTransport(views[r], wrap(transports[r]))
			var err error
			costs[r], err = e.MeasureLinks(t.Context(), policy(r))
			assert.NoError(t, err)
			groups[r] = collective.NewGroup(views[r], e, collective.Options{})
		})
	}
	all.Wait()
	t.Cleanup(func() {
		for _, g := range groups {
			assert.NoError(t, g.Close())
		}
	})
	return groups, costs
}

func onlyMessages(t collective.Transport) collective.Transport { return messagesOnly{t} }

// All ranks plan with the cost that rank 0 knows, or with the same measured one.
// Afterwards the group is as new.
func TestMeasureLinks(t *testing.T) {
	known := schedule.Cost{Latency: 123, PerByte: 4.5, Fold: schedule.Network.Fold}
	for _, n := range []int{2, 3, 5} {
		for name, policy := range map[string]func(rank int) collective.LinkPolicy{
			"known": func(rank int) collective.LinkPolicy {
				if rank == 0 {
					return collective.LinkPolicy{Known: known, Measure: true}
				}
				return collective.LinkPolicy{Known: schedule.Cost{Latency: 9}}
			},
			"measured": func(rank int) collective.LinkPolicy { return collective.LinkPolicy{Measure: rank == 0} },
			"neither":  func(rank int) collective.LinkPolicy { return collective.LinkPolicy{Measure: rank > 0} },
		} {
			groups, costs := measured(t, n, policy, onlyMessages)
			for r, g := range groups {
				require.Equal(t, costs[0], costs[r], name)
				near := g.Situation().Near
				switch name {
				case "known":
					require.Equal(t, known, near)
				case "measured":
					require.Positive(t, near.Latency)
					require.Equal(t, costs[0], near)
				case "neither":
					require.Zero(t, costs[r])
					require.Equal(t, schedule.InProcess, near)
				}
				require.Zero(t, g.Traffic(), "the trials do not count")
			}
			var all sync.WaitGroup
			for _, g := range groups {
				all.Go(func() {
					v := []float32{1}
					assert.NoError(t, collective.AllReduce(t.Context(), g, v, collective.Sum))
					assert.Equal(t, float32(n), v[0])
					sub, err := g.Sub(t.Context(), 0, 0)
					if assert.NoError(t, err) {
						assert.Equal(t, g.Situation().Near, sub.Situation().Near)
						assert.NoError(t, sub.Close())
					}
				})
			}
			all.Wait()
			calls := groups[0].Flight().Calls
			require.Equal(t, uint64(1), calls[0].Seq, "the trials are not calls of the group")
		}
	}
}

// Ranks that reduce in shared memory send no messages, so they measure none.
func TestNoLinks(t *testing.T) {
	groups, costs := measured(t, 2, func(int) collective.LinkPolicy { return collective.LinkPolicy{Measure: true} }, func(t collective.Transport) collective.Transport { return t })
	require.Zero(t, costs[0])
	require.Equal(t, schedule.InProcess, groups[0].Situation().Near)
	groups, costs = measured(t, 1, func(int) collective.LinkPolicy { return collective.LinkPolicy{Measure: true} }, onlyMessages)
	require.Len(t, groups, 1)
	require.Zero(t, costs[0])
}
