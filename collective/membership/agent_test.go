package membership

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/ringtrain/ringtrain/collective"
)

const patient = 20 * time.Second // for a loaded machine; nothing here needs more than 2 s

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	t.Cleanup(cancel)
	return ctx
}

// brief is how long a test waits for something that must not happen.
func brief(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// noLeak fails the test if goroutines are left at the end. memberlist's own need up
// to a probe interval to end.
func noLeak(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		var err error
		require.Eventually(t, func() bool { err = goleak.Find(before); return err == nil }, patient, 10*time.Millisecond, "%v", &err)
	})
}

func loopback(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
}

func start(t *testing.T, c Config) *Agent {
	t.Helper()
	c.Bind = loopback(c.Bind.Port())
	a, err := Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

func member(node string, local, size int) collective.Member {
	return collective.Member{
		Name: fmt.Sprintf("%s/%d", node, local), Node: node, Local: local, LocalSize: size, Host: 7,
		Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:4000"), netip.MustParseAddrPort("[fd00::1]:4000")},
	}
}

// views waits for the View of every agent and checks that they are equal.
func views(t *testing.T, agents []*Agent) []collective.View {
	t.Helper()
	got := make([]collective.View, len(agents))
	g, ctx := errgroup.WithContext(soon(t))
	for i, a := range agents {
		g.Go(func() (err error) {
			got[i], err = a.View(ctx)
			return err
		})
	}
	require.NoError(t, g.Wait())
	for i, v := range got {
		require.Equal(t, got[0].Digest(), v.Digest(), "%v and %v", got[0], v)
		require.Equal(t, agents[i].Member(), v.Members[v.Self])
		require.Equal(t, got[0].Members, v.Members)
		require.Equal(t, uint64(1), v.Epoch)
	}
	return got
}

func TestAgentsAgree(t *testing.T) {
	for _, test := range []struct{ nodes, locals int }{{1, 1}, {1, 2}, {2, 1}, {1, 4}, {4, 1}, {2, 2}, {8, 1}, {4, 2}} {
		t.Run(fmt.Sprintf("%dx%d", test.nodes, test.locals), func(t *testing.T) {
			noLeak(t)
			var agents []*Agent
			var seeds []string
			var want []string
			for n := range test.nodes {
				for l := range test.locals {
					c := Config{Member: member(fmt.Sprintf("vm%d", n), l, test.locals), Nodes: test.nodes, Join: seeds}
					agents = append(agents, start(t, c))
					seeds = []string{agents[0].Addr().String()}
					want = append(want, c.Member.Name)
				}
			}
			got := views(t, agents)
			var names []string
			for _, m := range got[0].Members {
				names = append(names, m.Name)
			}
			require.Equal(t, want, names, "ranks are in the order of (Node, Local)")
			for i, v := range got {
				require.Equal(t, i, v.Self)
			}
		})
	}
}

func TestAloneAtOnce(t *testing.T) {
	noLeak(t)
	a := start(t, Config{Member: collective.Member{Name: "solo"}})
	v, err := a.View(soon(t))
	require.NoError(t, err)
	require.Equal(t, 1, v.Size())
	require.NotZero(t, v.Job)
	require.Equal(t, "solo", v.Members[0].Node)
}

func TestSeedNeedNotBeTheLowest(t *testing.T) {
	noLeak(t)
	seed := start(t, Config{Member: member("vm2", 0, 1), Nodes: 3})
	join := []string{seed.Addr().String()}
	a := start(t, Config{Member: member("vm1", 0, 1), Nodes: 3, Join: join})
	b := start(t, Config{Member: member("vm0", 0, 1), Nodes: 3, Join: join})
	got := views(t, []*Agent{b, a, seed})
	require.Equal(t, "vm0/0", got[0].Name(0))
}

func TestProcessThatDiesBeforeTheViewIsReplaced(t *testing.T) {
	noLeak(t)
	a := start(t, Config{Member: member("vm0", 0, 2), Nodes: 2})
	join := []string{a.Addr().String()}
	first := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Join: join})
	_, err := a.View(brief(t))
	require.ErrorContains(t, err, "worker 1 on vm0 (2 of 3 workers have joined)")
	require.NoError(t, first.Leave(soon(t)))
	require.NoError(t, first.Close())
	second := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Join: join})
	mate := start(t, Config{Member: member("vm0", 1, 2), Nodes: 2, Join: join})
	got := views(t, []*Agent{a, mate, second})
	require.Equal(t, second.Member().Nonce, got[0].Members[2].Nonce)
}

func TestSeedThatComesLate(t *testing.T) {
	noLeak(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := netip.MustParseAddrPort(free.Addr().String()).Port()
	require.NoError(t, free.Close())

	refused := make(chan Waiting, 100)
	seed := loopback(port).String()
	early := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Join: []string{seed}, Progress: func(w Waiting) {
		if len(w.Seeds) > 0 {
			refused <- w
		}
	}})
	select {
	case w := <-refused:
		require.Contains(t, w.String(), seed+" refused the connection")
		require.Contains(t, w.String(), "waiting for 1 more machine")
	case <-soon(t).Done():
		require.Fail(t, "no note says that the seed cannot be joined")
	}
	late := start(t, Config{Member: member("vm0", 0, 1), Nodes: 2, Bind: loopback(port), Join: []string{seed}})
	views(t, []*Agent{early, late})
}

func TestForeignClustersStayApart(t *testing.T) {
	noLeak(t)
	hungUp := make(chan string, 100)
	one := start(t, Config{Member: member("vm0", 0, 1), Nodes: 2, Cluster: "one"})
	other := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Cluster: "other", Join: []string{one.Addr().String()},
		Progress: func(w Waiting) {
			for _, s := range w.Seeds {
				hungUp <- s.String()
			}
		}})
	select {
	case s := <-hungUp:
		require.Contains(t, s, "another cluster")
	case <-soon(t).Done():
		require.Fail(t, "no note says why the seed cannot be joined")
	}
	third := start(t, Config{Member: member("vm2", 0, 1), Nodes: 2, Cluster: "other", Join: []string{other.Addr().String(), one.Addr().String()}})
	views(t, []*Agent{other, third})
	_, err := one.View(brief(t))
	var wait *WaitError
	require.ErrorAs(t, err, &wait)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, 1, wait.Waiting.MissingNodes)
	require.Contains(t, err.Error(), "waiting for 1 more machine")
}

func TestTwoSelfSeededStarts(t *testing.T) {
	noLeak(t)
	a := start(t, Config{Member: member("vm0", 0, 1), Nodes: 1})
	b := start(t, Config{Member: member("vm1", 0, 1), Nodes: 1, Join: []string{a.Addr().String()}})
	va, err := a.View(soon(t))
	require.NoError(t, err)
	vb, err := b.View(soon(t))
	require.NoError(t, err)
	require.NotEqual(t, va.Job, vb.Job)
	require.Equal(t, 1, va.Size())
	require.Equal(t, 1, vb.Size())
}

func TestTooLate(t *testing.T) {
	noLeak(t)
	a := start(t, Config{Member: member("vm0", 0, 1), Nodes: 2})
	seed := []string{a.Addr().String()}
	b := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Join: seed})
	views(t, []*Agent{a, b})
	c := start(t, Config{Member: member("vm2", 0, 1), Nodes: 2, Join: seed})
	_, err := c.View(soon(t))
	require.ErrorIs(t, err, ErrComplete)
	require.Contains(t, err.Error(), "vm2/0")

	w := member("eye", 0, 1)
	w.Role = collective.Watcher
	eye := start(t, Config{Member: w, Join: seed})
	v, err := eye.View(soon(t))
	require.NoError(t, err)
	require.Equal(t, -1, v.Self)
	require.Equal(t, 2, v.Size())
}

func TestPortInUse(t *testing.T) {
	noLeak(t)
	a := start(t, Config{Member: member("vm0", 0, 1)})
	_, err := Start(t.Context(), Config{Member: member("vm1", 0, 1), Bind: a.Addr()})
	require.ErrorIs(t, err, ErrPortInUse)
	var inUse *PortInUseError
	require.ErrorAs(t, err, &inUse)
	require.Equal(t, a.Addr(), inUse.Addr)
	require.Contains(t, err.Error(), a.Addr().String())
}

func TestBadConfig(t *testing.T) {
	seeds := []string{"10.0.0.1:1"}
	for name, c := range map[string]Config{
		"no name":               {},
		"long name":             {Member: collective.Member{Name: string(make([]byte, maxName+1))}},
		"local beyond":          {Member: collective.Member{Name: "a", Local: 2, LocalSize: 2}},
		"role":                  {Member: collective.Member{Name: "a", Role: 9}},
		"nodes":                 {Member: collective.Member{Name: "a"}, Nodes: -1},
		"seed without port":     {Member: collective.Member{Name: "a"}, Nodes: 2, Join: []string{"vm1"}},
		"seeds but how many?":   {Member: collective.Member{Name: "a"}, Join: seeds},
		"nothing to advertise":  {Member: collective.Member{Name: "a"}, Bind: netip.MustParseAddrPort("[::]:0")},
		"cluster name too long": {Member: collective.Member{Name: "a"}, Cluster: string(make([]byte, 256))},
	} {
		_, err := Start(t.Context(), c)
		require.ErrorIs(t, err, ErrConfig, name)
	}
}

func TestLeaveIsNoticedAndCloseIsFinal(t *testing.T) {
	noLeak(t)
	gone := make(chan collective.Member, 10)
	a := start(t, Config{Member: member("vm0", 0, 1), Nodes: 2, Gone: func(m collective.Member) { gone <- m }})
	b := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Join: []string{a.Addr().String()}})
	views(t, []*Agent{a, b})
	require.NoError(t, b.Leave(soon(t)))
	select {
	case m := <-gone:
		require.Equal(t, b.Member(), m)
	case <-soon(t).Done():
		require.Fail(t, "no agent noticed that vm1 left")
	}
	require.NoError(t, b.Leave(soon(t)), "leaving twice")
	require.NoError(t, b.Close())
	require.NoError(t, b.Close(), "closing twice")
	require.NoError(t, b.Leave(soon(t)), "leaving after the end")
	_, err := b.View(soon(t))
	require.ErrorIs(t, err, ErrClosed)
}

func TestCloseWhileBusy(t *testing.T) {
	noLeak(t)
	// Nothing answers at 192.0.2.1, a documentation address, so dials hang.
	a := start(t, Config{Member: member("vm0", 0, 1), Nodes: 2, Join: []string{"192.0.2.1:1"}})
	var callers sync.WaitGroup
	callers.Go(func() {
		_, err := a.View(t.Context())
		require.ErrorIs(t, err, ErrClosed)
	})
	require.NoError(t, a.Close())
	callers.Wait()
}

func TestProgressNamesTheMissing(t *testing.T) {
	noLeak(t)
	var mu sync.Mutex
	var lines []string
	a := start(t, Config{Member: member("vm0", 0, 2), Nodes: 1, Progress: func(w Waiting) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, w.String())
	}})
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Contains(lines, "waiting for worker 1 on vm0 (1 of 2 workers have joined)")
	}, patient, time.Millisecond)
	tried := make(chan []string, 1)
	b := start(t, Config{Member: member("vm0", 1, 2), Nodes: 1, Join: []string{a.Addr().String()}, Progress: func(w Waiting) {
		select {
		case tried <- w.Trying:
		default:
		}
	}})
	require.Equal(t, []string{a.Addr().String()}, <-tried, "at first")
	views(t, []*Agent{a, b})
}
