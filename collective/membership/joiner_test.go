package membership

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// rounds records when a joiner in virtual time tried its seeds.
func rounds(t *testing.T, viewAfter time.Duration, length time.Duration) (at []time.Duration, reports [][]Seed) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		begin, checks := time.Now(), 0
		var mu sync.Mutex
		j := &joiner{
			self: netip.MustParseAddrPort("10.0.0.1:1"), seeds: []string{"10.0.0.1:1", "10.0.0.2:1"},
			join: func(addr string) error {
				mu.Lock()
				defer mu.Unlock()
				require.Equal(t, "seed/10.0.0.2:1", addr, "it does not join itself")
				at = append(at, time.Since(begin))
				return errors.New("1 error occurred:\n\t* failed to join 10.0.0.2:1: EOF\n\n")
			},
			lost:   func() ([]string, bool) { return nil, time.Since(begin) >= viewAfter },
			report: func(failures []Seed, hopeless bool) { reports = append(reports, failures); require.False(t, hopeless) },
			check:  func() { checks++ },
		}
		j.run(ctx)
		require.Equal(t, viewAfter > 0, checks > 0)
	})
	return at, reports
}

func TestJoinerSlowsDown(t *testing.T) {
	ms := time.Millisecond
	at, reports := rounds(t, time.Hour, 17*time.Second)
	require.Equal(t, []time.Duration{0, 200 * ms, 600 * ms, 1400 * ms, 3000 * ms, 6200 * ms, 11200 * ms, 16200 * ms}, at)
	require.Equal(t, []Seed{{Addr: "10.0.0.2:1", Problem: "hung up: does it use another cluster name, or is it not a ringtrain process? (EOF)"}}, reports[0])
}

func TestJoinerNeverStops(t *testing.T) {
	at, _ := rounds(t, 0, 10*time.Minute)
	for i := range at[1:] {
		require.InDelta(t, joinSettled.Seconds(), (at[i+1] - at[i]).Seconds(), 0.2*joinSettled.Seconds())
	}
	require.Greater(t, len(at), 30)
}

// A member of the View that gossip has given up is dialled for as long as a
// partition may take to heal, but not after it has returned or a later View has
// left it out.
func TestMembersLongGoneAreNotDialled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(local int) string {
			return netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(local)).String()
		}
		v := collective.View{Job: 7, Epoch: 1}
		for local := range 4 {
			v.Members = append(v.Members, collective.Member{Name: "m", Nonce: uint64(1 + local)})
		}
		s := newStatus(v.Members[0])
		dialled := func(want ...string) {
			t.Helper()
			got, hasView := s.lost()
			require.True(t, hasView)
			require.ElementsMatch(t, want, got)
		}
		s.install(v)
		for local := 1; local < 4; local++ {
			s.vanished(peerOf(v.Members[local]), at(local))
		}
		dialled(at(1), at(2), at(3))
		s.up(v.Members[1])
		dialled(at(2), at(3))
		s.install(collective.View{Job: 7, Epoch: 2, Members: v.Members[:3]})
		dialled(at(2))
		<-time.After(awayMost)
		dialled(at(2))
		s.vanished(peerOf(v.Members[1]), at(1))
		<-time.After(time.Second)
		dialled(at(1))
		require.Len(t, s.away, 1)
	})
}

func TestExplain(t *testing.T) {
	for text, want := range map[string]Seed{
		"1 error occurred:\n\t* failed to join 10.0.0.2:1: dial tcp 10.0.0.2:1: connect: connection refused\n\n": {Problem: "refused the connection"},
		"failed to join 10.0.0.2:1: dial tcp 10.0.0.2:1: i/o timeout":                                            {Problem: "did not answer"},
		"failed to join 10.0.0.2:1: dial tcp 10.0.0.2:1: connect: network is unreachable":                        {Problem: "cannot be reached (network is unreachable)"},
		"failed to join 10.0.0.2:1: no installed keys could decrypt the message":                                 {Problem: "has a different key: give both the same key file", Rejected: true},
		"failed to join x: remote state is encrypted and encryption is not configured":                           {Problem: "has a key, and this process has none: give both the same key file", Rejected: true},
		"failed to join x: encryption is configured but remote state is not encrypted":                           {Problem: "has no key, and this process has one: give both the same key file", Rejected: true},
		"received invalid msgType (72), expected pushPullMsg (6) from=10.0.0.2:1":                                {Problem: "answered, but is not a ringtrain process"},
		"anything else":                  {Problem: "cannot be joined: anything else"},
		"read: connection reset by peer": {Problem: "hung up: does it use another cluster name, or is it not a ringtrain process? (read: connection reset by peer)"},
	} {
		problem, rejected := explain(errors.New(text))
		require.Equal(t, want, Seed{Problem: problem, Rejected: rejected})
	}
}

// Joining is hopeless once every seed except ourselves has rejected us.
func TestHopeless(t *testing.T) {
	rejected, refused := attempt{seed: Seed{Addr: "a", Rejected: true}}, attempt{seed: Seed{Addr: "b"}}
	for _, test := range []struct {
		tries []attempt
		want  bool
	}{
		{nil, false}, {[]attempt{{self: true}}, false}, {[]attempt{rejected}, true}, {[]attempt{rejected, {self: true}}, true},
		{[]attempt{rejected, refused}, false}, {[]attempt{rejected, {joined: true}}, false}, {[]attempt{refused}, false},
	} {
		require.Equal(t, test.want, hopeless(test.tries), "%v", test.tries)
	}
	require.Equal(t, []Seed{{Addr: "a", Rejected: true}, {Addr: "b"}}, failed([]attempt{refused, rejected, {joined: true}, rejected, {self: true}}))
}

func TestResolve(t *testing.T) {
	got, err := resolve(t.Context(), "[fd00::1]:7946")
	require.NoError(t, err)
	require.Equal(t, []netip.AddrPort{netip.MustParseAddrPort("[fd00::1]:7946")}, got)
	got, err = resolve(t.Context(), "localhost:7946")
	require.NoError(t, err)
	require.NotEmpty(t, got)
	_, err = resolve(t.Context(), "10.0.0.1:http")
	require.Error(t, err)
}
