package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRoll(t *testing.T) {
	drawn := uint64(0)
	r := newRoll(func() uint64 { drawn++; return drawn })
	now := time.Unix(1000, 0)
	one, other := expects(member("vm0", 0, 1), 2), expects(member("vm1", 0, 1), 2)
	one.Nonce, other.Nonce = 1, 2
	p, q := peerOf(one.Member), peerOf(other.Member)
	require.True(t, r.idle())
	require.False(t, r.see(now, one))
	require.False(t, r.see(now, other))
	require.Len(t, r.due(now), 2)
	require.Empty(t, r.due(now), "not again at once")
	for _, wrong := range []struct {
		p  peer
		id uint64
	}{{p, 2}, {q, 1}, {p, 0}, {peer{"vm2/0", 3}, 1}} {
		_, ok := r.answered(wrong.p, wrong.id)
		require.False(t, ok, "%v", wrong)
	}
	one.Version = "v2"
	require.False(t, r.see(now, one))
	got, ok := r.answered(p, 1)
	require.True(t, ok)
	require.Equal(t, one, got, "as gossip showed it last")
	require.True(t, r.see(now, one))
	_, ok = r.answered(p, 1)
	require.False(t, ok, "once")

	require.Empty(t, r.deaf())
	var at []time.Duration
	for since := time.Duration(0); since < 10*time.Second; since += tick {
		for _, c := range r.due(now.Add(since)) {
			require.Equal(t, other, c.who)
			at = append(at, since)
		}
	}
	ms := time.Millisecond
	require.Equal(t, []time.Duration{250 * ms, 750 * ms, 1750 * ms, 3750 * ms, 5750 * ms, 7750 * ms, 9750 * ms}, at)
	require.Equal(t, []candidate{other}, r.deaf())
	r.gone(q)
	require.True(t, r.idle())
	require.Empty(t, r.deaf())
	r.gone(p)
	require.False(t, r.see(now, one), "it has come back, and is asked anew")
	_, ok = r.answered(p, 1)
	require.False(t, ok)
	_, ok = r.answered(p, 3)
	require.True(t, ok)
}
