package crew

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/membership"
)

// Workers agree on whether a group was formed. Only an attempt that took too long makes the
// next one more patient.
func TestPartnersAwait(t *testing.T) {
	const never = time.Hour
	lost := errors.New("a server is lost")
	for _, c := range []struct {
		name     string
		outcomes [2]error
		patience [2]time.Duration // 0: the worker has no outcome
		want     error
	}{
		{"formed", [2]error{}, [2]time.Duration{never, never}, nil},
		{"one failed", [2]error{nil, lost}, [2]time.Duration{never, never}, errAgain},
		{"one was slow", [2]error{}, [2]time.Duration{never, 0}, errSlow},
		{"one failed, one was slow", [2]error{lost, nil}, [2]time.Duration{never, 0}, errSlow},
	} {
		t.Run(c.name, func(t *testing.T) {
			collectivetest.Run(t, collectivetest.Local(t, 2), func(ctx context.Context, g *collective.Group) {
				p, formed := &Partners{Group: g}, make(chan error, 1)
				patience := c.patience[g.Rank()]
				if patience > 0 {
					formed <- c.outcomes[g.Rank()]
				}
				err := p.await(ctx, formed, patience)
				require.ErrorIs(t, err, c.want)
				require.Equal(t, c.want == errSlow, errors.Is(err, errSlow))
			})
		})
	}
}

// If waiting cannot help, a worker does not try again.
func TestPartnersAwaitInVain(t *testing.T) {
	collectivetest.Run(t, collectivetest.Local(t, 1), func(ctx context.Context, g *collective.Group) {
		formed := make(chan error, 1)
		formed <- membership.ErrKey
		err := (&Partners{Group: g}).await(ctx, formed, time.Hour)
		require.ErrorIs(t, err, membership.ErrKey)
		require.NotErrorIs(t, err, errAgain)
	})
}
