package trainer_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/tcp"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// overTCP connects n ranks by loopback sockets.
func overTCP(t testing.TB, n int) ([]collective.View, []collective.Transport) {
	members, connectors := make([]collective.Member, n), make([]*tcp.Connector, n)
	for r := range n {
		id := tcp.Identity{Cluster: "test", Name: fmt.Sprintf("n/%d", r), Nonce: uint64(100 + r)}
		connectors[r] = tcp.NewConnector(id)
		l, err := tcp.Listen(context.Background(), "127.0.0.1:0", id, connectors[r])
		require.NoError(t, err)
		t.Cleanup(func() {
			assert.NoError(t, l.Close())
			connectors[r].Close()
		})
		members[r] = collective.Member{Name: id.Name, Nonce: id.Nonce, Addrs: []netip.AddrPort{l.Addr().(*net.TCPAddr).AddrPort()}}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	views, transports := make([]collective.View, n), make([]collective.Transport, n)
	var all sync.WaitGroup
	for r := range n {
		views[r] = collective.View{Job: 7, Epoch: 1, Self: r, Members: members}
		all.Go(func() {
			var err error
			transports[r], err = connectors[r].Connect(ctx, views[r])
			assert.NoError(t, err)
		})
	}
	all.Wait()
	return views, transports
}

// fiveBuckets is a bucket size at which the gradients of a test's model leave in five
// buckets.
const fiveBuckets = 64

// One rank with N micro-batches gives the bits of N ranks: with dropout, over any
// transport, in any number of buckets, and with partial batches.
func TestRanksEqualMicroBatches(t *testing.T) {
	steps := 50
	if testing.Short() { // such as under the race detector, which slows arithmetic down
		steps = 12
	}
	for _, n := range []int{2, 3, 4} {
		for name, optimizer := range map[string]optim.Optimizer{"Adam": optim.DefaultAdam(), "SGD": optim.DefaultSGD(.1)} {
			usual := job{batch: 16, steps: steps, dropout: .2, optimizer: optimizer, hidden: 48}
			one := usual
			one.ranks, one.micro = 1, n
			want := one.run(t)[0]
			require.NoError(t, want.err)
			for over, connect := range map[string]maker{"in process": inproc, "tcp": overTCP} {
				if over == "tcp" && name == "SGD" {
					continue // slow, and tests nothing new
				}
				for bucket, buckets := range map[int]int{0: 1, fiveBuckets: 5} {
					t.Run(fmt.Sprintf("%d ranks %s %s %d buckets", n, name, over, buckets), func(t *testing.T) {
						many := usual
						many.ranks, many.connect, many.bucket = n, connect, bucket
						for _, got := range many.run(t) {
							require.NoError(t, got.err)
							require.Equal(t, want.values, got.values)
							require.Equal(t, buckets, got.steps[7].Buckets)
							for i, e := range got.steps {
								require.Equal(t, want.steps[i].Loss, e.Loss, "step %d", i)
								require.Equal(t, want.steps[i].Weight, e.Weight)
							}
						}
					})
				}
			}
		}
	}
}

// Micro-batches on several ranks have the same rows and masks, but are added in a
// different order.
func TestMicroBatchesOverRanks(t *testing.T) {
	usual := job{batch: 8, steps: 30, dropout: .2, optimizer: optim.DefaultSGD(.1)}
	both, ranks := usual, usual
	both.ranks, both.micro, both.bucket = 2, 3, fiveBuckets
	ranks.ranks = 6
	got, want := both.run(t), ranks.run(t)
	require.NoError(t, got[0].err)
	require.Equal(t, got[0].values, got[1].values)
	requireClose(t, want[0].values, got[0].values, 1e-5)
}

// A single batch of all rows differs only by rounding.
func TestRanksEqualOneTrueBatch(t *testing.T) {
	for _, n := range []int{2, 3, 4} {
		for _, bucket := range []int{0, fiveBuckets} {
			usual := job{ranks: 1, batch: 16 * n, steps: 50, dropout: .2, optimizer: optim.DefaultSGD(.1)}
			many := usual
			many.ranks, many.batch, many.bucket = n, 16, bucket
			requireClose(t, usual.run(t)[0].values, many.run(t)[0].values, 1e-5)

			usual.optimizer, many.optimizer = optim.DefaultAdam(), optim.DefaultAdam()
			want, got := usual.run(t)[0].values, many.run(t)[0].values
			apart, size := 0.0, 0.0
			for i := range want {
				apart += math.Pow(float64(want[i])-float64(got[i]), 2)
				size += math.Pow(float64(want[i]), 2)
			}
			require.Less(t, math.Sqrt(apart/size), 1e-5, "%d ranks: relative L2 with Adam", n)
			require.NotZero(t, apart, "rounding alone makes them differ")
		}
	}
}

func requireClose(t *testing.T, want, got []float32, apart float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.InDelta(t, want[i], got[i], apart, "weight %d", i)
	}
}

// With the sum of means, steps grow with the number of ranks. If every step has the
// same number of rows on each rank, N ranks give the steps of one large batch at N
// times the learn rate.
func TestReduceSum(t *testing.T) {
	rate := func(r float64) optim.SGD { return optim.SGD{LearnRate: optim.Constant(r)} }
	sum := func(_ int, c *trainer.Config) { c.Reduce = trainer.ReduceSum }
	mean := job{ranks: 1, batch: 30, steps: 40, optimizer: rate(.1)}.run(t)
	added := job{ranks: 2, batch: 15, steps: 40, optimizer: rate(.05), bucket: fiveBuckets, change: sum}.run(t)
	require.NoError(t, added[0].err)
	requireClose(t, mean[0].values, added[0].values, 1e-5)
	micro := job{ranks: 1, micro: 2, batch: 15, steps: 40, optimizer: rate(.05), change: sum}.run(t)
	require.Equal(t, added[0].values, micro[0].values)
	require.Equal(t, added[1].values, micro[0].values)
}

// With the total of all rows, a step is as large as the mean at a learn rate that is larger by
// their number. Micro-batches, and recorded steps, give the bits of ranks.
func TestReduceTotal(t *testing.T) {
	rate := func(r float64) optim.SGD { return optim.SGD{LearnRate: optim.Constant(r)} }
	total := func(_ int, c *trainer.Config) { c.Reduce = trainer.ReduceTotal }
	mean := job{ranks: 1, batch: 30, steps: 40, optimizer: rate(.1)}.run(t)
	two := job{ranks: 2, batch: 15, steps: 40, optimizer: rate(.1 / 30), bucket: fiveBuckets, change: total}
	added := two.run(t)
	require.NoError(t, added[0].err)
	requireClose(t, mean[0].values, added[0].values, 1e-5)
	micro := job{ranks: 1, micro: 2, batch: 15, steps: 40, optimizer: rate(.1 / 30), change: total}.run(t)
	require.Equal(t, added[0].values, micro[0].values)
	require.Equal(t, added[0].values, two.recorded(3, false).run(t)[1].values)
}

// Every Reduce has a name.
func TestParseReduce(t *testing.T) {
	for _, name := range []string{"mean", "sum", "total"} {
		r, err := trainer.ParseReduce(name)
		require.NoError(t, err)
		require.Equal(t, name, r.String())
	}
	_, err := trainer.ParseReduce("Reduce(3)")
	require.EqualError(t, err, `must be mean, sum or total, not "Reduce(3)"`)
}

// The bug of gradients that are never zeroed has the same effect on one rank with
// micro-batches.
func TestAccumulateWithMicroBatches(t *testing.T) {
	never := func(_ int, c *trainer.Config) { c.Accumulate = true }
	many := job{ranks: 3, batch: 8, steps: 20, optimizer: optim.DefaultAdam(), change: never}.run(t)
	one := job{ranks: 1, micro: 3, batch: 8, steps: 20, optimizer: optim.DefaultAdam(), change: never}.run(t)
	require.NoError(t, one[0].err)
	require.Equal(t, many[0].values, one[0].values)
}
