package paramserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

func TestCommand(t *testing.T) {
	b := make([]int64, commandLen)
	for _, c := range []command{
		{verb: verbStart, step: 5, number: maxLayout}, {verb: verbStep, step: 7, undivided: true}, {verb: verbState, wanted: true}, {verb: verbEnd}, {verb: verbResume, number: 3},
	} {
		c.put(b)
		require.Equal(t, c, getCommand(b))
		require.NoError(t, c.check())
	}
	for _, c := range []command{{}, {verb: 6}, {verb: -1}, {verb: verbStep, step: -1}, {verb: verbStep, number: -1}, {verb: verbStart, number: maxLayout + 1}, {verb: verbResume, number: maxLayout + 1}} {
		require.ErrorContains(t, c.check(), "run the same version")
	}
	require.Equal(t, "start step state end resume verb 9", verbStart.String()+" "+verbStep.String()+" "+verbState.String()+" "+verbEnd.String()+" "+verbResume.String()+" "+verb(9).String())
}

// Every rank gets the commands of the workers, or an error that names the worker whose
// command differs.
func TestCommands(t *testing.T) {
	collectivetest.Ranks(t, 4, func(ctx context.Context, g *collective.Group) {
		const workers = 3
		mine := command{verb: verbState, step: 4, wanted: g.Rank() == 1}
		if g.Rank() >= workers {
			mine = command{}
		}
		all, err := commands(ctx, ranks{group: g, workers: workers}, mine)
		assert.NoError(t, err)
		assert.Equal(t, []bool{false, true, false}, []bool{all[0].wanted, all[1].wanted, all[2].wanted})

		mine.verb = verbStep
		if g.Rank() == 2 {
			mine.step++
		}
		_, err = commands(ctx, ranks{group: g, workers: workers}, mine)
		assert.ErrorContains(t, err, "rank 2 (local/2) is at step 5 and rank 0 at step 4")
		mine.verb = verb(77)
		_, err = commands(ctx, ranks{group: g, workers: workers}, mine)
		assert.ErrorContains(t, err, "unknown command verb 77")
	})
}
