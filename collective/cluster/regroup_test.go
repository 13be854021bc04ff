package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// After a failure of a Sub, the View before the next one is the whole View, and the lost
// member is known even if it is not in the Sub.
func TestLeaveWithASub(t *testing.T) {
	for name, lost := range map[string]int{"in the Sub": 1, "outside": 0} {
		t.Run(name, func(t *testing.T) {
			views, transports := collective.Local(3)
			groups := collectivetest.Groups(t, views, transports, collective.Options{})
			subs := make([]*collective.Group, 3)
			collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
				var err error
				subs[g.Rank()], err = g.Sub(ctx, min(g.Rank(), 1), 0)
				assert.NoError(t, err)
			})
			transports[2].Abort(&collective.RankError{Rank: lost, Phase: "receive", Err: collective.ErrLost})
			require.ErrorIs(t, subs[2].Barrier(t.Context()), collective.ErrLost)
			n := &Node{group: groups[2]}
			view, gone, err := n.leave(t.Context(), subs[2])
			require.NoError(t, err)
			require.Equal(t, views[2], view)
			require.Equal(t, views[2].Members[lost:lost+1], gone)
			require.NoError(t, errors.Join(subs[0].Close(), subs[1].Close()))
		})
	}
}
