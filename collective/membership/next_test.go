package membership

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// job starts the workers of one machine and waits until they have a View.
func job(t *testing.T, n int, change func(*Config)) ([]*Agent, collective.View) {
	t.Helper()
	var agents []*Agent
	var seeds []string
	for l := range n {
		c := Config{Member: member("m", l, n), Nodes: 1, Join: seeds}
		if change != nil {
			change(&c)
		}
		agents = append(agents, start(t, c))
		seeds = append(seeds, agents[l].Addr().String())
	}
	return agents, views(t, agents)[0]
}

func TestNextWithTheSameMembers(t *testing.T) {
	noLeak(t)
	agents, first := job(t, 3, nil)
	begin := time.Now()
	next, err := agents[2].Next(soon(t), first, nil) // the others vote although they do not ask
	require.NoError(t, err)
	t.Logf("a View after %v", time.Since(begin))
	require.Equal(t, uint64(2), next.Epoch)
	require.Equal(t, first.Job, next.Job)
	require.Equal(t, first.Members, next.Members)
	require.Equal(t, 2, next.Self)
	for i, a := range agents[:2] {
		v, err := a.Next(soon(t), first, nil) // already agreed
		require.NoError(t, err)
		require.Equal(t, next.Digest(), v.Digest())
		require.Equal(t, i, v.Self)
		v, err = a.View(soon(t))
		require.NoError(t, err)
		require.Equal(t, uint64(2), v.Epoch, "View is the newest")
	}
	v, err := agents[0].Next(soon(t), next, nil)
	require.NoError(t, err)
	require.Equal(t, uint64(3), v.Epoch)
}

func TestNextDoesNotWaitForGossip(t *testing.T) {
	for name, dead := range map[string]int{"first": 0, "middle": 1, "last": 4} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			agents, first := job(t, 5, nil)
			require.NoError(t, agents[dead].Close())
			begin := time.Now()
			var g errgroup.Group
			for i, a := range agents {
				if i == dead {
					continue
				}
				g.Go(func() error {
					v, err := a.Next(soon(t), first, first.Members[dead:dead+1])
					if err == nil {
						require.Equal(t, slices.Delete(slices.Clone(first.Members), dead, dead+1), v.Members)
					}
					return err
				})
			}
			require.NoError(t, g.Wait())
			require.Less(t, time.Since(begin), time.Second)
		})
	}
}

func TestExpelled(t *testing.T) {
	noLeak(t)
	agents, first := job(t, 3, nil)
	lost := first.Members[1:2]
	for _, i := range []int{0, 2} {
		v, err := agents[i].Next(soon(t), first, lost)
		require.NoError(t, err)
		require.Equal(t, 2, v.Size())
	}
	for range 2 { // and again
		_, err := agents[1].Next(soon(t), first, nil)
		require.ErrorIs(t, err, ErrExpelled)
		var out *ExpelledError
		require.ErrorAs(t, err, &out)
		require.Equal(t, uint64(2), out.Epoch)
		require.Equal(t, first.Job, out.Job)
		require.Regexp(t, `^m/1: the job continues without this process .* is at epoch 2, reported by m/[02]\)`, err.Error())
	}
}

func TestMinority(t *testing.T) {
	for _, test := range []struct {
		name       string
		size       int
		dead       []int
		least      int
		need, left int
	}{
		{"one of two", 2, []int{0}, 0, 2, 1},
		{"one of three", 3, []int{0, 1}, 0, 2, 1},
		{"two of three, where three are wanted", 3, []int{1}, 3, 3, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			noLeak(t)
			agents, first := job(t, test.size, func(c *Config) { c.MinSize = test.least })
			var lost []collective.Member
			for _, d := range test.dead {
				require.NoError(t, agents[d].Close())
				lost = append(lost, first.Members[d])
			}
			_, err := agents[test.size-1].Next(brief(t), first, lost)
			require.ErrorIs(t, err, ErrMinority)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			var m *MinorityError
			require.ErrorAs(t, err, &m)
			require.Equal(t, test.need, m.Need)
			require.Len(t, m.Reachable, test.left)
			require.Equal(t, lost, m.Missing)
			require.Equal(t, first.Digest(), m.View.Digest())
			require.ErrorContains(t, err, "missing: "+lost[0].Name)
		})
	}
}

func TestMinorityIsClearAfterAWhile(t *testing.T) {
	collectivetest.Slow(t)
	noLeak(t)
	agents, first := job(t, 2, nil)
	require.NoError(t, agents[1].Close())
	begin := time.Now()
	_, err := agents[0].Next(soon(t), first, first.Members[1:])
	require.ErrorIs(t, err, ErrMinority)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.InDelta(t, minorityPatience.Seconds(), time.Since(begin).Seconds(), 2)
}

// The outlook of an earlier Next does not shorten the patience of the next one.
func TestMinorityOfAnEarlierNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		self := member("m", 0, 2)
		s := newStatus(self)
		s.foresee(&outlook{short: time.Now().Add(-time.Minute)})
		began := time.Now()
		_, err := s.next(t.Context(), self, collective.View{})
		require.ErrorIs(t, err, ErrMinority)
		require.Equal(t, minorityPatience, time.Since(began))
	})
}

// Both of two members are alive, but their connection broke: each reports that it
// lost the other.
func TestLostButAlive(t *testing.T) {
	noLeak(t)
	agents, first := job(t, 2, nil)
	var g errgroup.Group
	for i, a := range agents {
		g.Go(func() error {
			v, err := a.Next(soon(t), first, first.Members[1-i:2-i])
			require.Equal(t, first.Members, v.Members)
			return err
		})
	}
	require.NoError(t, g.Wait())
}

func TestNextWithoutAnAnswer(t *testing.T) {
	noLeak(t)
	agents, first := job(t, 2, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := agents[0].Next(ctx, first, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrMinority, "gossip sees both")
	require.NoError(t, agents[0].Close())
	_, err = agents[0].Next(soon(t), first, nil)
	require.ErrorIs(t, err, ErrClosed)
}

// A process that restarts under its old name is a new one, and the job has no place
// for it.
func TestQuickRestart(t *testing.T) {
	noLeak(t)
	gone := make(chan collective.Member, 10)
	agents, first := job(t, 3, func(c *Config) {
		c.Gone = func(m collective.Member) { gone <- m }
	})
	old := agents[2].Member()
	require.NoError(t, agents[2].Close()) // without a goodbye
	again := start(t, Config{Member: member("m", 2, 3), Nodes: 1, Bind: loopback(agents[2].Addr().Port()), Join: []string{agents[0].Addr().String()}})
	require.Equal(t, old.Name, again.Member().Name)
	require.NotEqual(t, old.Nonce, again.Member().Nonce)
	sees := func(m collective.Member) func() bool {
		return func() bool {
			return slices.ContainsFunc(agents[0].Seen(), func(s collective.Member) bool { return peerOf(s) == peerOf(m) })
		}
	}
	require.Eventually(t, sees(again.Member()), patient, time.Millisecond, "the new one joins")
	select {
	case m := <-gone:
		require.Equal(t, old, m, "the old one leaves")
	case <-soon(t).Done():
		require.Fail(t, "no agent noticed that the old process is gone")
	}
	require.Eventually(t, func() bool { return !sees(old)() }, patient, time.Millisecond)
	_, err := again.View(soon(t))
	require.ErrorIs(t, err, ErrComplete)
	v, err := agents[0].Next(soon(t), first, nil)
	require.NoError(t, err)
	require.Equal(t, first.Members[:2], v.Members)
}

// Two machines start at once, and each lists both as seeds.
func TestTwoStartsThatSeedEachOther(t *testing.T) {
	noLeak(t)
	a, b := start(t, Config{Member: member("x", 0, 1)}), start(t, Config{Member: member("x", 0, 1)})
	at := []netip.AddrPort{a.Addr(), b.Addr()} // two free ports
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	join := []string{at[0].String(), at[1].String()}
	var agents []*Agent
	for i, addr := range at {
		agents = append(agents, start(t, Config{Member: member([]string{"vm0", "vm1"}[i], 0, 1), Nodes: 2, Bind: addr, Join: join}))
	}
	require.Equal(t, 2, views(t, agents)[0].Size())
}

func TestSeen(t *testing.T) {
	noLeak(t)
	agents, _ := job(t, 2, nil)
	w := member("eye", 0, 1)
	w.Role = collective.Watcher
	eye := start(t, Config{Member: w, Join: []string{agents[0].Addr().String()}})
	names := func(a *Agent) string {
		var list []string
		for _, m := range a.Seen() {
			list = append(list, m.Name)
		}
		return strings.Join(list, " ")
	}
	for _, a := range append(agents, eye) {
		require.Eventually(t, func() bool { return names(a) == "eye/0 m/0 m/1" }, patient, time.Millisecond)
	}
	require.NoError(t, agents[1].Leave(soon(t)))
	for _, a := range []*Agent{agents[0], eye} {
		require.Eventually(t, func() bool { return names(a) == "eye/0 m/0" }, patient, time.Millisecond)
	}
}
