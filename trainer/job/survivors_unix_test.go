//go:build unix

package job

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A worker that is stopped for good is lost when its heartbeats have been missing for long
// enough, and the launcher ends it.
func TestWorkerStopped(t *testing.T) {
	collectivetest.Slow(t)
	for _, transport := range []string{cluster.TransportAuto, cluster.TransportTCP} {
		t.Run(transport, func(t *testing.T) {
			s := surviving(t, psAsync)
			s.Transport = transport
			victim := 0
			h := &heard{}
			h.on = func(e event.Event) {
				if victim == 0 && atStep(5)(e) {
					victim = pidOf(2)
					require.NoError(t, syscall.Kill(victim, syscall.SIGSTOP))
				}
			}
			err := Run(t.Context(), s.spec(), s.share(t, h))
			survived(t, s, h, err, 2)
			require.Contains(t, eventsOf[*event.Lost](h)[0].Error, collective.ErrSilent.Error())
			require.ErrorIs(t, syscall.Kill(victim, 0), syscall.ESRCH, "the launcher has ended it")
		})
	}
}
