package membership

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mended reports whether the newest View among live processes has only live
// members, all of them hold it, and all others know that they are out; or whether
// it has lost its majority, so that no other can follow.
func (s *world) mended() bool {
	newest := s.newest()
	if newest == nil {
		return true
	}
	living := 0
	for _, p := range peersOf(newest.learner.held.view.Members) {
		if !s.ever[p].dead {
			living++
		}
	}
	size := newest.learner.held.view.Size()
	if living <= size/2 {
		return true
	}
	for _, p := range s.procs {
		if p.dead || rankOf(newest.learner.held.view.Members, p.id) < 0 && p.learner.excluded != nil {
			continue
		}
		if p.learner.held == nil || p.learner.held.view.Epoch != newest.learner.held.view.Epoch {
			return false
		}
	}
	return living == size
}

func (s *world) newest() *proc {
	var newest *proc
	for _, p := range s.procs {
		if !p.dead && p.learner.held != nil && (newest == nil || p.learner.held.view.Epoch > newest.learner.held.view.Epoch) {
			newest = p
		}
	}
	return newest
}

// wreck forms a first View of n and kills members under bad weather.
func wreck(seed uint64, tracing bool) (*world, bool) {
	r := rand.New(rand.NewPCG(seed, 3))
	n := 3 + r.IntN(5)
	s := newWorld(seed, n, 0, 1, weather{delay: 20 * time.Millisecond, gossip: 100 * time.Millisecond})
	s.tracing = tracing
	for slot := range n {
		s.start(slot)
	}
	if !s.run(10*time.Second, s.converged) {
		return s, false
	}
	s.weather, s.mend = badWeather(r), true
	s.slander = s.weather.slander
	deaths := r.IntN((n + 1) / 2)
	if r.IntN(10) == 0 {
		deaths = r.IntN(n)
	}
	s.deaths = r.IntN(deaths + 1)
	for _, slot := range r.Perm(n)[:deaths-s.deaths] {
		again := r.IntN(3) == 0
		s.after(s.upTo(3*time.Second), func() {
			s.crash(slot)
			if again { // as a new process, which the job does not expect
				s.after(s.upTo(2*time.Second), func() { s.restart(slot) })
			}
		})
	}
	s.run(6*time.Second, nil)
	s.weather = weather{delay: 20 * time.Millisecond, gossip: 100 * time.Millisecond}
	for _, p := range s.procs {
		for _, q := range s.births {
			if q.dead {
				s.after(s.upTo(noticed), func() { s.bury(p, q) })
			} else if p != q {
				s.notice(p, q)
			}
		}
	}
	s.run(noticed, nil)
	return s, s.run(10*time.Second, s.mended)
}

// noticed is how long gossip takes at most to detect deaths.
const noticed = 5 * time.Second

func TestLaterViewsUnderFaults(t *testing.T) {
	schedules := uint64(5000)
	if testing.Short() || raceEnabled {
		schedules = 300
	}
	shrunk, turnedAway := 0, 0
	for seed := range schedules {
		s, ok := wreck(seed, false)
		if !ok || s.broken != "" {
			s, ok = wreck(seed, true)
			require.Empty(t, s.broken, "seed %d\n%s", seed, s.story())
			require.True(t, ok, "seed %d did not converge\n%s", seed, s.story())
			require.Fail(t, "a schedule is not reproducible", "seed %d", seed)
		}
		s.checkMajorities(t)
		if newest := s.newest(); newest != nil && newest.learner.held.view.Epoch > 1 {
			shrunk++
		}
		for _, p := range s.procs {
			if p.learner.held == nil && p.learner.excluded != nil {
				turnedAway++
			}
		}
	}
	require.Greater(t, shrunk, int(schedules)/4, "the schedules hardly ever led to a later View")
	require.Greater(t, turnedAway, int(schedules)/20, "hardly any process was restarted")
	t.Logf("%d schedules: %d with later Views, %d processes turned away", schedules, shrunk, turnedAway)
}

// checkMajorities checks that each later View has a majority of the one before.
func (s *world) checkMajorities(t *testing.T) {
	t.Helper()
	for key, v := range s.agreed {
		before, ok := s.agreed[[2]uint64{key[0], key[1] - 1}]
		if !ok {
			require.Equal(t, uint64(1), v.Epoch, "a View with no View before it: %v", v)
			continue
		}
		common := 0
		for _, m := range v.Members {
			if rankOf(before.Members, peerOf(m)) >= 0 {
				common++
			}
		}
		require.Greater(t, common, before.Size()/2, "%v after %v", v, before)
	}
}
