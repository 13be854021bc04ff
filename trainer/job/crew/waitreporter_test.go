package crew

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/membership"
)

// stamped records lines with the time at which they came.
type stamped struct {
	begun time.Time
	lines []string
}

func (s *stamped) Write(b []byte) (int, error) {
	s.lines = append(s.lines, fmt.Sprintf("%v %s", time.Since(s.begun), strings.TrimSpace(string(b))))
	return len(b), nil
}

// The user gets a line after two seconds, then every ten seconds, and soon after a change.
func TestWaitReporterWritesEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stamped{begun: time.Now()}
		a := newWaitReporter(out)
		w := membership.Waiting{Nodes: 2, Workers: 4, Present: make([]collective.Member, 1), MissingNodes: 1}
		a.changed(w)
		w.Present, w.Seeds = make([]collective.Member, 2), []membership.Seed{{Addr: "10.0.0.1:7946", Problem: "refused the connection"}}
		a.changed(w)
		<-time.After(23 * time.Second)
		for range 10 { // a seed whose answers alternate must not flood the terminal
			w.Seeds = []membership.Seed{{Addr: "10.0.0.1:7946", Problem: "did not answer"}}
			a.changed(w)
			w.Seeds = []membership.Seed{{Addr: "10.0.0.1:7946", Problem: "refused the connection"}}
			a.changed(w)
		}
		w.MissingNodes, w.Workers, w.Seeds = 0, 2, nil
		a.changed(w)
		<-time.After(5 * time.Second)
		w.Visitors = []string{"10.0.0.9 tried to join with a different key"}
		a.changed(w)
		a.end()
		<-time.After(time.Minute)
		synctest.Wait()
		const refused = "waiting for 1 more machine (2 of 4 workers have joined, %d s): 10.0.0.1:7946 refused the connection; try: ringtrain doctor 10.0.0.1:7946"
		require.Equal(t, []string{
			"2s " + fmt.Sprintf(refused, 2), "12s " + fmt.Sprintf(refused, 12), "22s " + fmt.Sprintf(refused, 22),
			"23s waiting for 1 more machine (2 of 4 workers have joined, 23 s): 10.0.0.1:7946 did not answer; try: ringtrain doctor 10.0.0.1:7946",
			"24s waiting for agreement (2 of 2 workers have joined, 24 s)",
			"28s waiting for agreement (2 of 2 workers have joined, 28 s): 10.0.0.9 tried to join with a different key",
		}, out.lines)
	})
}

func TestWaitLine(t *testing.T) {
	base := membership.Waiting{Nodes: 2, Workers: 2, Present: make([]collective.Member, 1), MissingNodes: 1, Addr: netip.MustParseAddrPort("10.0.0.1:7946")}
	require.Equal(t, "waiting for 1 more machine (1 of 2 workers have joined, 20 s); there, try: ringtrain doctor 10.0.0.1:7946", waitLine(base, 20*time.Second))
	trying := base
	trying.Trying = []string{"b:1"}
	require.Equal(t, "waiting for 1 more machine (1 of 2 workers have joined, 2 s): no answer yet from b:1", waitLine(trying, 2*time.Second))
	key := base
	key.Seeds = []membership.Seed{{Addr: "b:1", Problem: "has no key", Rejected: true}}
	require.Equal(t, "waiting for 1 more machine (1 of 2 workers have joined): b:1 has no key", waitLine(key, 0))
	odd := base
	odd.Differ = []string{"--nodes is 2 here and 3 on b/0"}
	require.NotContains(t, waitLine(odd, 0), "doctor")
	local := base
	local.MissingNodes, local.Missing = 0, []membership.Slot{{Node: "vm", Local: 1}}
	require.Equal(t, "waiting for worker 1 on vm (1 of 2 workers have joined)", waitLine(local, 0))

	err := joinTimedOut(&membership.WaitError{Waiting: key, Err: ErrJoinTimeout}, time.Minute)
	require.EqualError(t, err, "gave up after 1m0s (--join-timeout) waiting for 1 more machine (1 of 2 workers have joined): b:1 has no key")
	other := errors.New("another")
	require.Equal(t, other, joinTimedOut(other, time.Minute))
}
