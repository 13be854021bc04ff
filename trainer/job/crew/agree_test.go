package crew

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// machines are the groups of a job of three machines with two ranks each.
func machines(t *testing.T) []*collective.Group {
	views, transports := collective.Local(6)
	for i := range views {
		views[i].Members = append([]collective.Member(nil), views[i].Members...)
		for r := range views[i].Members {
			views[i].Members[r].Node = string(rune('a' + r/2))
		}
	}
	return collectivetest.Groups(t, views, transports, collective.Options{})
}

// All ranks fail when one does: with its own words, or those of a rank of its
// machine, or else those of the first.
func TestAgree(t *testing.T) {
	groups := machines(t) // a, a, b, b, c, c
	for _, c := range []struct{ mine, want map[int]string }{
		{nil, nil},
		{map[int]string{0: "full"}, map[int]string{0: "full", 1: "rank 0 (local/0): full", 2: "rank 0 (local/0): full", 3: "rank 0 (local/0): full", 4: "rank 0 (local/0): full", 5: "rank 0 (local/0): full"}},
		{map[int]string{2: "full", 4: "gone"}, map[int]string{0: "rank 2 (local/2): full", 1: "rank 2 (local/2): full", 2: "full", 3: "rank 2 (local/2): full", 4: "gone", 5: "rank 4 (local/4): gone"}},
	} {
		collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
			var mine error
			if text, ok := c.mine[g.Rank()]; ok {
				mine = errors.New(text)
			}
			err := Agree(ctx, g, mine)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want[g.Rank()])
			require.ErrorAs(t, err, new(*ToldError))
			require.NoError(t, g.Barrier(ctx), "the group is whole")
		})
	}
}
