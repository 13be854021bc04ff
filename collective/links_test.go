package collective_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// messagesOnly is a Transport without abilities.
type messagesOnly struct{ collective.Transport }

// A linked rank has a group after MeasureLinks, and what that returned.
type linked struct {
	group    *collective.Group
	links    *schedule.Links
	measured bool
}

// link measures the links of n ranks, with perHost ranks on each host.
func link(t *testing.T, n, perHost int, policy func(rank int) collective.LinkPolicy, wrap func(collective.Transport) collective.Transport) []linked {
	views, transports := collective.Local(n)
	ranks := make([]linked, n)
	var all sync.WaitGroup
	for r := range n {
		view := views[r]
		view.Members = slices.Clone(view.Members)
		for i := range view.Members {
			view.Members[i].Host = collective.HostID(1 + i/perHost)
		}
		all.Go(func() {
			e := collective.OverTransport(view, wrap(transports[r]))
			l := &ranks[r]
			var err error
			l.links, l.measured, err = e.MeasureLinks(t.Context(), policy(r))
			assert.NoError(t, err)
			l.group = collective.NewGroup(view, e, collective.Options{})
		})
	}
	all.Wait()
	t.Cleanup(func() {
		for _, l := range ranks {
			assert.NoError(t, l.group.Close())
		}
	})
	return ranks
}

func onlyMessages(t collective.Transport) collective.Transport { return messagesOnly{t} }

func allShare(t collective.Transport) collective.Transport { return t }

func measuring(int) collective.LinkPolicy { return collective.LinkPolicy{Measure: true} }

// All ranks plan with what rank 0 knows, or with the same measurements. Afterwards the
// group is as new.
func TestMeasureLinks(t *testing.T) {
	known := schedule.Links{Near: schedule.Cost{Latency: 123, PerByte: 4.5}, Calls: []schedule.Sample{{Bytes: 1 << 20, Took: time.Hour}}}
	wrong := known
	wrong.Calls = []schedule.Sample{{Bytes: 64 << 10, Took: time.Hour}}
	for _, n := range []int{2, 3, 5} {
		for name, policy := range map[string]func(rank int) collective.LinkPolicy{
			"known": func(rank int) collective.LinkPolicy {
				if rank == 0 {
					return collective.LinkPolicy{Known: &known, Measure: true}
				}
				return collective.LinkPolicy{Known: &wrong}
			},
			"measured": func(rank int) collective.LinkPolicy { return collective.LinkPolicy{Measure: rank == 0} },
			"wrong": func(rank int) collective.LinkPolicy {
				return collective.LinkPolicy{Known: &wrong, Measure: rank == 0}
			},
			"wrong, but fixed": func(int) collective.LinkPolicy { return collective.LinkPolicy{Known: &wrong} },
			"neither":          func(rank int) collective.LinkPolicy { return collective.LinkPolicy{Measure: rank > 0} },
		} {
			ranks := link(t, n, n, policy, onlyMessages)
			for _, l := range ranks {
				s := l.group.Situation()
				require.Equal(t, ranks[0].links, l.links, name)
				require.Equal(t, name == "measured" || name == "wrong", l.measured, name)
				switch {
				case name == "neither":
					require.Nil(t, l.links)
					require.Equal(t, schedule.InProcess, s.Near)
					require.Empty(t, s.Calls)
				case name == "known":
					require.Equal(t, known, s.Links)
				case name == "wrong, but fixed":
					require.Equal(t, wrong, s.Links)
				default:
					require.Equal(t, *l.links, s.Links)
					require.NoError(t, s.Links.Check())
					require.Positive(t, s.Near.Latency)
					require.NotEqual(t, schedule.InProcess, s.Near)
					require.Equal(t, schedule.Network, s.Far, "there is one host")
					require.NotEmpty(t, s.Calls, "how many depends on the load")
					require.Less(t, s.Calls[0].Took, time.Minute)
					require.Zero(t, s.Try, "only calls that are timed try other methods")
				}
				require.Zero(t, l.group.Traffic(), "the trials do not count")
			}
			var all sync.WaitGroup
			for _, l := range ranks {
				g := l.group
				all.Go(func() {
					v := []float32{1}
					assert.NoError(t, collective.AllReduce(t.Context(), g, v, collective.Sum))
					assert.Equal(t, float32(n), v[0])
					sub, err := g.Sub(t.Context(), 0, 0)
					if assert.NoError(t, err) {
						assert.Equal(t, g.Situation().Near, sub.Situation().Near)
						assert.Empty(t, sub.Situation().Calls)
						assert.NoError(t, sub.Close())
					}
				})
			}
			all.Wait()
			calls := ranks[0].group.Flight().Calls
			require.Equal(t, uint64(1), calls[0].Seq, "the trials are not calls of the group")
		}
	}
}

// Where some hosts have several ranks, both kinds of links are measured. Ranks alone on
// their host take part.
func TestMeasureLinksInsideHosts(t *testing.T) {
	for _, n := range []int{4, 5} {
		for _, l := range link(t, n, 2, measuring, onlyMessages) {
			s := l.group.Situation()
			require.NotEqual(t, schedule.InProcess, s.Near)
			require.NotEqual(t, schedule.Network, s.Far)
			require.Positive(t, s.Near.Latency)
			require.Positive(t, s.Far.Latency)
			require.NotEmpty(t, s.Calls)
		}
	}
}

// Ranks that reduce in shared memory send no messages, so they time only calls.
func TestNoLinks(t *testing.T) {
	for _, l := range link(t, 2, 2, measuring, allShare) {
		s := l.group.Situation()
		require.Equal(t, schedule.InProcess, s.Near)
		require.NotEmpty(t, s.Calls)
		require.Zero(t, l.group.Traffic())
		v := collective.Of(make([]float32, 1<<20))
		last := s.Calls[0]
		for _, call := range s.Calls {
			if call.Bytes == v.Bytes() {
				last = call
			}
		}
		if last.Bytes == v.Bytes() {
			require.InEpsilon(t, last.Took, l.group.PlanAllReduce(v, collective.Sum).Predicted, .01, "predictions are what calls took")
		}
	}
	alone := link(t, 1, 1, measuring, onlyMessages)
	require.Nil(t, alone[0].links)
}
