package shm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// Calls of all lengths follow each other without a barrier, so fast ranks begin
// calls while slow ranks still read the memory of the previous one. Every sum is
// right.
func TestCallsOfAllLengths(t *testing.T) {
	const chunk = 256 << 10 / 8
	calls := 400
	if testing.Short() {
		calls = 100
	}
	cores := runtime.GOMAXPROCS(8) // so that the kernel preempts ranks anywhere
	t.Cleanup(func() { runtime.GOMAXPROCS(cores) })
	for _, size := range []int{2, 3, 4} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			collectivetest.Run(t, groups(t, size), func(ctx context.Context, g *collective.Group) {
				rng := rand.New(rand.NewPCG(1, 2)) // the same on every rank
				delay := rand.New(rand.NewPCG(3, uint64(g.Rank())))
				s := make([]int64, 7*chunk)
				for call := range calls {
					n := rng.IntN(4 * chunk)
					switch rng.IntN(4) {
					case 0:
						n = rng.IntN(2000)
					case 1:
						n = chunk*(1+rng.IntN(6)) + rng.IntN(100)
					}
					for i := range n {
						s[i] = int64(g.Rank() + i + call)
					}
					if delay.IntN(8) == 0 { // this rank is late
						for i := n; i < len(s); i++ {
							s[i]++
						}
					}
					if !assert.NoError(t, collective.AllReduce(ctx, g, s[:n], collective.Sum)) {
						return
					}
					for i := range n {
						if want := int64(size*(size-1)/2 + size*(i+call)); s[i] != want {
							assert.Fail(t, "wrong sum", "call %d of %d elements, rank %d, element %d: %d, not %d", call, n, g.Rank(), i, s[i], want)
							g.Abort(assert.AnError)
							return
						}
					}
				}
			})
		})
	}
}
