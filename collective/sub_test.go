package collective

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// If a rank fails that is not in a group of Sub, every later call of that group names it,
// with its number in the View. A failed rank in the group has its number there.
func TestSubNamesFailedRanks(t *testing.T) {
	full := errors.New("the disk is full")
	for name, c := range map[string]struct {
		colors [][]int // of Sub, and of Sub of its result; by rank of the View
		whole  int     // the culprit in the View
		rank   int     // and in the group of rank 0, or -1
	}{
		"outside":               {[][]int{{0, 0, 1, 1}}, 3, -1},
		"inside":                {[][]int{{0, 1, 1, 0}}, 3, 1},
		"outside the innermost": {[][]int{{0, 1, 0, 0}, {0, 0, 0, 1}}, 3, -1},
		"outside both":          {[][]int{{0, 1, 0, 0}, {0, 0, 0, 1}}, 1, -1},
		"inside both":           {[][]int{{0, 1, 0, 0}, {0, 0, 1, 0}}, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			views, transports := Local(4)
			var ready, done sync.WaitGroup
			ready.Add(len(views))
			failed := make(chan struct{})
			for r, v := range views {
				done.Go(func() {
					all := NewGroup(v, OverTransport(v, transports[r]), Options{})
					defer all.Close()
					g := all
					for _, colors := range c.colors {
						sub, err := g.Sub(ctx, colors[r], r)
						if !assert.NoError(t, err) {
							break
						}
						defer sub.Close()
						if g = sub; colors[r] != 0 {
							break // the other colors have no part in the next Sub
						}
					}
					ready.Done()
					if r == c.whole {
						ready.Wait()
						all.Abort(full)
						close(failed)
						return
					}
					<-failed
					if r > 0 {
						return
					}
					var lost *RankError
					for _, err := range []error{g.Lost(), g.Barrier(ctx), g.Barrier(ctx)} {
						if !assert.ErrorAs(t, err, &lost) {
							return
						}
						assert.Equal(t, c.rank, lost.Rank)
						assert.Equal(t, views[0].Name(c.whole), lost.Node)
						assert.ErrorContains(t, err, full.Error())
						if c.rank < 0 {
							assert.Equal(t, c.whole, lost.Whole)
							assert.ErrorContains(t, err, fmt.Sprintf("rank %d of the whole view (%s) failed", c.whole, lost.Node))
						}
					}
				})
			}
			done.Wait()
		})
	}
}

// A group of Sub that fails because of a rank outside tells the other ranks which it was.
func TestSubAbortsWithRanksOfTheView(t *testing.T) {
	views, transports := Local(3)
	bottom := OverTransport(views[2], transports[2])
	sub := &subTransport{t: transports[2], outer: bottom, ranks: []int{1, 2}}
	why := &RankError{Rank: -1, Whole: 0, Phase: "failed", Err: ErrLeft}
	sub.Abort(why)
	var lost *RankError
	require.ErrorAs(t, AbilitiesOf(transports[1]).Err(), &lost)
	require.Equal(t, 0, lost.Rank)
	require.Equal(t, -1, why.Rank, "the caller's error stays as it was")
	require.NoError(t, errors.Join(bottom.Close(), transports[0].Close(), transports[1].Close()))
}
