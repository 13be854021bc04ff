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
)

// rounds records when a joiner in virtual time tried its seeds.
func rounds(t *testing.T, settledAfter time.Duration, length time.Duration) (at []time.Duration, reports [][]string) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		begin := time.Now()
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
			lost:   func() ([]string, bool) { return nil, time.Since(begin) >= settledAfter },
			report: func(failures []string) { reports = append(reports, failures) },
		}
		j.run(ctx)
	})
	return at, reports
}

func TestJoinerSlowsDown(t *testing.T) {
	ms := time.Millisecond
	at, reports := rounds(t, time.Hour, 17*time.Second)
	require.Equal(t, []time.Duration{0, 200 * ms, 600 * ms, 1400 * ms, 3000 * ms, 6200 * ms, 11200 * ms, 16200 * ms}, at)
	require.Equal(t, []string{"10.0.0.2:1: it hung up: does it use another cluster name, or is it no ringtrain process? (EOF)"}, reports[0])
}

func TestJoinerNeverStops(t *testing.T) {
	at, _ := rounds(t, 0, 10*time.Minute)
	for i := range at[1:] {
		require.InDelta(t, joinSettled.Seconds(), (at[i+1] - at[i]).Seconds(), 0.2*joinSettled.Seconds())
	}
	require.Greater(t, len(at), 30)
}

func TestExplain(t *testing.T) {
	require.Equal(t, "dial tcp 10.0.0.2:1: connect: connection refused",
		explain(errors.New("1 error occurred:\n\t* failed to join 10.0.0.2:1: dial tcp 10.0.0.2:1: connect: connection refused\n\n")))
	require.Equal(t, "anything else", explain(errors.New("anything else")))
	require.Contains(t, explain(errors.New("read: connection reset by peer")), "hung up")
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
