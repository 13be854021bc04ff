package cluster

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/membership"
)

// A report from another rank leads to the same port and direction as this rank's own
// error.
func TestBlockedReported(t *testing.T) {
	at := [...]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:4000"), netip.MustParseAddrPort("10.0.0.2:5000")}
	v := collective.View{Job: 1, Epoch: 1, Self: 1}
	for i, a := range at {
		v.Members = append(v.Members, collective.Member{Name: string(rune('a' + i)), Addrs: []netip.AddrPort{a}})
	}
	absent := errors.Join(collective.ErrNotConnected, errors.New("--join-timeout expired"))
	for name, test := range map[string]struct {
		rank     int
		reported bool // reported by rank 0
		err      error
		in       bool
		at       netip.AddrPort
	}{
		"it has not connected here":             {0, false, absent, true, at[1]},
		"this has not connected there":          {1, true, absent, false, at[0]},
		"it could not connect, and reported so": {1, true, errors.New("i/o timeout"), true, at[1]},
	} {
		t.Run(name, func(t *testing.T) {
			cause := &collective.RankError{Rank: test.rank, Phase: "connect", Err: test.err}
			if test.reported {
				var err error
				cause, err = collective.GetAbort(collective.PutAbort(cause, 0), v.Size())
				require.NoError(t, err)
			}
			var e *BlockedError
			require.ErrorAs(t, blocked(v, cause), &e)
			require.Equal(t, 0, e.Rank)
			require.Equal(t, test.in, e.In, "%v", e)
			require.Equal(t, []netip.AddrPort{test.at}, e.Addrs)
		})
	}
}

// After the agreement and before the connections, no process owes an answer.
func TestProgressWhileConnecting(t *testing.T) {
	var last membership.Waiting
	n, err := Join(t.Context(), Config{Cluster: t.Name(), Node: "a", LocalSize: 1, Progress: func(w membership.Waiting) { last = w }})
	require.NoError(t, err)
	defer n.Close()
	_, err = n.Group(t.Context())
	require.NoError(t, err)
	require.True(t, last.Connecting)
	require.Contains(t, last.String(), "waiting for connections between the workers (1 of 1 worker has joined): gossip works")
}
