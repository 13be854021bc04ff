package membership

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// badWeather is either rough everywhere, or fair except that proposers die, or seem
// to, at the worst moment.
func badWeather(r *rand.Rand) weather {
	ms := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Millisecond }
	w := weather{slander: r.IntN(2) == 0, rumours: 0.02 * r.Float64(), straggle: ms(8000)}
	if r.IntN(3) == 0 {
		w.loss, w.dup, w.delay, w.gossip = 0.4*r.Float64(), 0.3*r.Float64(), ms(3000), ms(1500)
		return w
	}
	w.loss, w.delay, w.gossip, w.sabotage = 0.1*r.Float64(), ms(300), ms(300), r.Float64()
	return w
}

// storm runs one random schedule and returns its world, and whether it converged.
func storm(seed uint64, tracing bool) (*world, bool) {
	r := rand.New(rand.NewPCG(seed, 2))
	sizes := [][2]int{{2, 1}, {3, 1}, {4, 1}, {5, 1}, {7, 1}, {1, 2}, {1, 4}, {2, 2}, {3, 2}, {2, 3}}
	size := sizes[r.IntN(len(sizes))]
	w := badWeather(r)
	surplus := 0
	if size[0] > 1 && r.IntN(5) == 0 {
		surplus = 1
	}
	s := newWorld(seed, size[0], surplus, size[1], w)
	s.tracing = tracing
	n := len(s.slots)
	for slot := range n {
		s.after(s.upTo(2*time.Second), func() { s.restart(slot) })
	}
	chaos := time.Duration(1+r.IntN(8)) * time.Second
	for range r.IntN(2 * n) {
		slot, at := r.IntN(n), 500*time.Millisecond+time.Duration(r.Int64N(int64(chaos)))
		again := time.Duration(r.IntN(3000)) * time.Millisecond
		s.after(at, func() {
			s.crash(slot)
			s.after(again, func() { s.restart(slot) })
		})
	}
	s.run(chaos+2*time.Second, nil)
	if s.broken != "" {
		return s, false
	}
	s.calm()
	s.run(noticed, nil)
	ok := s.run(10*time.Second, s.converged)
	// With surplus machines and false alarms, two jobs may want one process. It may
	// then get no proof that the View it accepted was never decided.
	return s, ok || s.surplus > 0 && s.slander
}

func TestFirstViewUnderFaults(t *testing.T) {
	schedules := uint64(1000)
	if collectivetest.Thorough() && !testing.Short() && !raceEnabled {
		schedules = 5000
	}
	for seed := range schedules {
		if s, ok := storm(seed, false); ok && s.broken == "" {
			continue
		}
		s, ok := storm(seed, true)
		require.Empty(t, s.broken, "seed %d\n%s", seed, s.story())
		require.True(t, ok, "seed %d did not converge\n%s", seed, s.story())
		require.Fail(t, "a schedule is not reproducible", "seed %d", seed)
	}
}

// The time since when too few members can be reached begins again when enough could be.
func TestShortSince(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	a, b, c := single("a", wish{Nodes: 3}), single("b", wish{Nodes: 3}), single("c", wish{Nodes: 3})
	s := newCensus(a)
	d := &demand{census: s, learner: &learner{census: s, held: &holding{view: collective.View{Job: 1, Epoch: 1, Members: []collective.Member{a.Member, b.Member, c.Member}}}}}
	d.want(now)
	d.measure(now)
	require.Equal(t, now, d.wanted.short)
	d.measure(now.Add(time.Second))
	require.Equal(t, now, d.wanted.short)
	s.add(b)
	d.measure(now.Add(2 * time.Second))
	require.Zero(t, d.wanted.short, "two of three are enough")
	s.remove(peerOf(b.Member))
	d.measure(now.Add(3 * time.Second))
	require.Equal(t, now.Add(3*time.Second), d.wanted.short)
}
