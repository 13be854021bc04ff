package crew

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// If a rank fails, all fail: with their own error, or that of a rank on their machine, or
// else that of the lowest rank.
func TestAgree(t *testing.T) {
	groups := collectivetest.Machines(t, 3, 2) // a, a, b, b, c, c
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
			require.NoError(t, g.Barrier(ctx), "the group still works")
		})
	}
}
