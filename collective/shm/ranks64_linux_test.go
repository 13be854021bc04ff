package shm

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// 64 ranks, many more than cores, make calls of every way without a barrier
// between them. Every result is right.
func TestSixtyFourRanks(t *testing.T) {
	const size, rounds = 64, 2
	ranks := newHost(t, size)
	calls := []struct {
		n       int
		inArena bool
	}{{1, false}, {900, false}, {70_000, false}, {2000, true}, {70_000, true}}
	vectors := make([][][]int64, size) // by rank and call
	for r, p := range ranks {
		for _, c := range calls {
			vectors[r] = append(vectors[r], p.vector(t, c.n, c.inArena))
		}
	}
	end := func() { // no rank waits for one that has failed
		for _, p := range ranks {
			p.Abort(&collective.RankError{Err: assert.AnError})
		}
	}
	var all sync.WaitGroup
	for r, p := range ranks {
		all.Go(func() {
			defer func() {
				if t.Failed() {
					end()
				}
			}()
			for round := range rounds {
				for k := range calls {
					s := vectors[r][k]
					for i := range s {
						s[i] = int64(r + i + round)
					}
					if !assert.NoError(t, p.AllReduce(p.sum(s))) {
						return
					}
					for i, got := range s {
						if want := int64(size*(size-1)/2 + size*(i+round)); got != want {
							assert.Fail(t, "wrong sum", "rank %d, call %d, element %d: %d, not %d", r, k, i, got, want)
							return
						}
					}
				}
				h := collective.Header{Job: 7, Epoch: 1, Seq: p.calls + 1, Call: collective.Call{Kind: collective.KindBarrier}}
				if !assert.NoError(t, p.Barrier(&collective.Operation{Header: h})) {
					return
				}
			}
		})
	}
	all.Wait()
	require.False(t, t.Failed())
}
