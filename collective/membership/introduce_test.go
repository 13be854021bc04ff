package membership

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// strangers returns an Agent of rank self of a View of n members, to which gossip has shown some.
func strangers(n, self int, shown ...int) (*Agent, collective.View) {
	v := collective.View{Job: 7, Epoch: 1, Self: self}
	for r := range n {
		v.Members = append(v.Members, collective.Member{Node: "a", Local: r, Name: "m", Nonce: uint64(1 + r)})
	}
	c := candidate{Member: v.Members[self]}
	a := &Agent{known: map[peer]memberlist.Node{}, met: map[peer]bool{}, status: newStatus(c.Member), machine: newMachine(time.Now(), c, func() uint64 { return 1 })}
	for _, r := range shown {
		p := peerOf(v.Members[r])
		a.known[p] = memberlist.Node{Name: p.gossipName(), Addr: net.IPv4(10, 0, 0, 1), Port: uint16(r)}
		a.machine.census.add(candidate{Member: v.Members[r]})
	}
	return a, v
}

// joins checks which addresses an Agent's joiner joins at once.
func joins(t *testing.T, a *Agent, want ...string) {
	t.Helper()
	require.Equal(t, want, a.status.met())
	select {
	case <-a.status.soon:
		require.NotEmpty(t, want)
	default:
		require.Empty(t, want)
	}
}

// A process that does not know all members of a new View joins one that it knows.
func TestMembersOfAViewAreIntroduced(t *testing.T) {
	for _, c := range []struct {
		self  int
		shown []int
		asked []string
	}{
		{1, []int{0}, []string{"10.0.0.1:0"}},
		{1, []int{0, 2}, []string{"10.0.0.1:2"}},
		{2, []int{0, 1}, []string{"10.0.0.1:0"}},
		{1, []int{0, 2, 3}, nil},
		{1, nil, nil},
	} {
		a, v := strangers(4, c.self, c.shown...)
		a.introduce(v)
		joins(t, a, c.asked...)
	}
}

// A process that gossip shows but that does not answer a repeated ballot is joined once per View.
func TestSilentProcessesAreRoused(t *testing.T) {
	a, v := strangers(4, 1, 0, 2, 3)
	m, now := a.machine, time.Unix(0, 0)
	m.learner.install(v, ballot{})
	m.demand.least = 1
	m.census.remove(peerOf(v.Members[0])) // it left, and the others want a View without it
	m.Next(now, nil)
	require.NotNil(t, m.proposer.run)
	a.rouse()
	joins(t, a)
	m.Receive(now, message{Kind: promise, From: peerOf(v.Members[2]), To: m.id, Job: 7, Epoch: 2, Ballot: m.proposer.run.ballot})
	m.Tick(now.Add(resendFirst))
	a.rouse()
	joins(t, a, "10.0.0.1:3")
	m.Tick(now.Add(3 * resendFirst))
	a.rouse()
	joins(t, a)
	a.introduce(v)
	a.rouse()
	joins(t, a, "10.0.0.1:3")
}

// A joiner joins an address once while it waits for its next round, and no seeds.
func TestJoinerJoinsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		s, begin, joined := newStatus(collective.Member{}), time.Now(), map[string]time.Duration{}
		s.agreed = &collective.View{Job: 7, Epoch: 1}
		time.AfterFunc(3*time.Second, func() { s.join("10.0.0.2:1") })
		time.AfterFunc(5*time.Second, func() { s.join("10.0.0.3:1") })
		j := &joiner{
			self: netip.MustParseAddrPort("10.0.0.1:1"), seeds: []string{"10.0.0.4:1"}, lost: s.lost, met: s.met, soon: s.soon, check: func() {},
			join:   func(addr string) error { joined[addr] += time.Since(begin); return nil },
			report: func(failures []Seed, _ bool) { require.Empty(t, failures) },
		}
		j.run(ctx)
		require.Equal(t, map[string]time.Duration{"seed/10.0.0.4:1": 0, "seed/10.0.0.2:1": 3 * time.Second, "seed/10.0.0.3:1": 5 * time.Second}, joined)
	})
}
