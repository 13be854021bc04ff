package collective_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// A call is what one rank does in a test.
type call func(ctx context.Context, g *collective.Group) error

func barrier(ctx context.Context, g *collective.Group) error { return g.Barrier(ctx) }

func reduce(n int) call {
	return func(ctx context.Context, g *collective.Group) error {
		return collective.AllReduce(ctx, g, make([]float32, n), collective.Sum)
	}
}

func gather(n int) call {
	return func(ctx context.Context, g *collective.Group) error {
		return collective.AllGather(ctx, g, make([]float32, n*g.Size()), make([]float32, n))
	}
}

func broadcast(root int) call {
	return func(ctx context.Context, g *collective.Group) error {
		return collective.Broadcast(ctx, g, make([]float32, 5), root)
	}
}

func send(to int) call {
	return func(ctx context.Context, g *collective.Group) error {
		return g.Send(ctx, collective.Of(make([]float32, 5)), to)
	}
}

func recv(from int) call {
	return func(ctx context.Context, g *collective.Group) error {
		return g.Recv(ctx, collective.Of(make([]float32, 5)), from)
	}
}

// begin makes a rank begin a call, and returns when all calls that have begun wait.
func begin(ctx context.Context, g *collective.Group, c call) <-chan error {
	done := make(chan error, 1)
	go func() { done <- c(ctx, g) }()
	synctest.Wait()
	return done
}

// If one rank waits at the rendezvous and another makes a different call, both get an
// error, whichever came first. The third rank gets one too.
func TestRendezvousFindsOtherCalls(t *testing.T) {
	const many = 300_000
	for name, calls := range map[string][3]call{
		"barrier and reduction":               {barrier, reduce(1), nil},
		"reduction and barrier":               {reduce(many), barrier, barrier},
		"few and many":                        {reduce(1), reduce(many), nil},
		"gathering and reduction":             {gather(1), reduce(1), gather(1)},
		"few and many to gather":              {gather(1), gather(many), gather(1)},
		"many and few to gather":              {gather(many), gather(1), gather(1)},
		"barrier, then a message":             {barrier, send(0), nil},
		"barrier, then an awaited":            {barrier, recv(0), nil},
		"barrier after a message":             {send(1), barrier, nil},
		"barrier after an awaited":            {recv(1), barrier, nil},
		"broadcast after reduction":           {reduce(many), broadcast(0), reduce(many)},
		"broadcast from a rank that has come": {barrier, broadcast(0), barrier},
		"broadcast from a rank that has not":  {barrier, broadcast(2), nil},
		"reduction after broadcast":           {broadcast(0), reduce(1), nil},
		"reduction and broadcast":             {broadcast(1), nil, reduce(1)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				groups := collectivetest.Local(t, 3)
				var done []<-chan error
				for r, c := range calls {
					if c != nil {
						done = append(done, begin(t.Context(), groups[r], c))
					}
				}
				for i, d := range done {
					err := <-d
					require.ErrorIs(t, err, collective.ErrMismatch)
					require.ErrorContains(t, err, ", rank ", "both are named: %d", i)
				}
				require.ErrorIs(t, groups[2].Barrier(t.Context()), collective.ErrMismatch)
			})
		})
	}
}

// Messages between some ranks do not disturb those that wait at the rendezvous.
func TestRendezvousLetsOthersSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := collectivetest.Local(t, 4)
		subs := make([]*collective.Group, 3)
		collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
			color := 0
			if g.Rank() == 3 {
				color = -1
			}
			sub, err := g.Sub(ctx, color, 0)
			assert.NoError(t, err)
			if sub != nil {
				subs[g.Rank()] = sub
			}
		})
		third := begin(t.Context(), groups[3], barrier)
		received := begin(t.Context(), groups[1], recv(0))
		require.NoError(t, send(1)(t.Context(), groups[0]))
		require.NoError(t, <-received)
		collectivetest.Run(t, subs, func(ctx context.Context, g *collective.Group) {
			assert.NoError(t, reduce(10_000)(ctx, g))
			assert.NoError(t, barrier(ctx, g))
		})
		second := begin(t.Context(), groups[2], barrier)
		sent := begin(t.Context(), groups[0], send(1))
		require.NoError(t, recv(0)(t.Context(), groups[1]))
		require.NoError(t, <-sent)
		collectivetest.Run(t, groups[:2], func(ctx context.Context, g *collective.Group) { assert.NoError(t, barrier(ctx, g)) })
		require.NoError(t, <-second)
		require.NoError(t, <-third)

		// But a Sub waits in vain for a rank that waits at the rendezvous of the whole group.
		part := begin(t.Context(), subs[0], barrier)
		whole := begin(t.Context(), groups[1], barrier)
		require.ErrorIs(t, <-part, collective.ErrMismatch)
		require.ErrorIs(t, <-whole, collective.ErrMismatch)
		for _, s := range subs {
			require.NoError(t, s.Close())
		}
	})
}

// A wait at the rendezvous ends with its context, and every error names the rank whose
// context ended.
func TestRendezvousObeysTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := collectivetest.Local(t, 4)
		ctx, cancel := context.WithCancelCause(t.Context())
		done := []<-chan error{begin(t.Context(), groups[0], barrier), begin(ctx, groups[1], barrier), begin(t.Context(), groups[2], barrier)}
		cancel(errors.New("no patience"))
		synctest.Wait()
		for _, d := range append(done, begin(t.Context(), groups[3], barrier)) {
			var given *collective.RankError
			require.ErrorAs(t, <-d, &given)
			require.Equal(t, 1, given.Rank)
			require.Equal(t, "cancelled", given.Phase)
			require.ErrorContains(t, given, "no patience")
		}
	})
}

// When time runs out, the error names a rank that has not called, not one that waits
// for the same.
func TestRendezvousNamesWhoIsLate(t *testing.T) {
	for name, c := range map[string]call{"rendezvous": reduce(1), "messages": broadcast(1)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				groups := collectivetest.Local(t, 4)
				var done []<-chan error
				for _, r := range []int{3, 0, 1} {
					done = append(done, begin(t.Context(), groups[r], c))
				}
				for _, d := range done {
					var late *collective.RankError
					require.ErrorAs(t, <-d, &late)
					require.Equal(t, 2, late.Rank)
					require.Equal(t, "not called", late.Phase)
					require.ErrorIs(t, late, collective.ErrLate)
				}
			})
		})
	}
}

// The flight record names the rank that is missing now, even if others were missing
// when the wait began.
func TestRendezvousFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := collectivetest.Local(t, 4)
		var done []<-chan error
		for come, missing := range [][]int{{1, 2, 3}, {2, 3}, {3}} {
			done = append(done, begin(t.Context(), groups[come], reduce(100_000)))
			for _, g := range groups[:come+1] {
				w := g.Flight().Waiting
				require.NotNil(t, w)
				require.Contains(t, missing, w.Rank)
				require.Equal(t, collective.LateToCall, w.Cause)
			}
			<-time.After(time.Second)
		}
		require.NoError(t, reduce(100_000)(t.Context(), groups[3]))
		for r, d := range done {
			require.NoError(t, <-d)
			calls := groups[r].Flight().Calls
			require.Len(t, calls, 1)
			require.Len(t, calls[0].Waits, 1)
			require.Equal(t, collective.Wait{Rank: 3, Late: time.Duration(3-r) * time.Second}, calls[0].Waits[0])
		}
	})
}

// If a rank is closed while others wait for it at the rendezvous, they name it, whether
// or not it waits there itself.
func TestRendezvousOfWhoLeaves(t *testing.T) {
	for name, waits := range map[string]bool{"waits": true, "is awaited": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				groups := collectivetest.Local(t, 4)
				done := []<-chan error{begin(t.Context(), groups[0], barrier)}
				var own <-chan error
				if waits {
					own = begin(t.Context(), groups[1], barrier)
				}
				done = append(done, begin(t.Context(), groups[2], barrier))
				require.NoError(t, groups[1].Close())
				if waits {
					require.ErrorIs(t, <-own, collective.ErrClosed)
				}
				for _, d := range append(done, begin(t.Context(), groups[3], barrier)) {
					var left *collective.RankError
					require.ErrorAs(t, <-d, &left)
					require.Equal(t, 1, left.Rank)
					require.ErrorIs(t, left, collective.ErrLeft)
				}
			})
		})
	}
	t.Run("alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			groups := collectivetest.Local(t, 2)
			own := begin(t.Context(), groups[0], barrier)
			require.NoError(t, groups[0].Close())
			require.ErrorIs(t, <-own, collective.ErrClosed)
			require.ErrorIs(t, groups[1].Barrier(t.Context()), collective.ErrLeft)
		})
	})
}

// After an error the vector belongs to its owner again, whatever the other ranks do.
// The race detector would report an access by another rank.
func TestRendezvousLeavesMemoryAlone(t *testing.T) {
	for _, n := range []int{1, 100_000} {
		const ranks = 16
		groups := collectivetest.Local(t, ranks)
		errEnough := errors.New("enough")
		var entered sync.WaitGroup
		entered.Add(ranks - 1)
		collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
			s := make([]float32, n)
			if g.Rank() == 0 {
				entered.Wait()
				g.Abort(errEnough)
			} else {
				entered.Done()
			}
			assert.ErrorIs(t, collective.AllReduce(ctx, g, s, collective.Sum), errEnough)
			for i := range s {
				s[i]++
			}
		})
	}
}

// Until a job breaks in the middle of calls, every rank gets correct results.
// Afterwards no memory is accessed.
func TestRendezvousBreaksAnywhere(t *testing.T) {
	const ranks, n = 5, 20_000
	want := collectivetest.Reduced[float32](ranks, n, 0, collective.Sum)
	rng := rand.New(rand.NewPCG(3, 5))
	for range 40 {
		groups := collectivetest.Local(t, ranks)
		culprit, after, manner := rng.IntN(ranks), rng.IntN(6), rng.IntN(3)
		collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			var other sync.WaitGroup
			defer other.Wait()
			for i := 0; ; i++ {
				if i == after && g.Rank() == culprit {
					other.Go(func() {
						switch manner {
						case 0:
							g.Abort(errors.New("enough"))
						case 1:
							cancel()
						default:
							assert.NoError(t, g.Close())
						}
					})
				}
				s := collectivetest.Operands[float32](g.Rank(), n)
				if err := collective.AllReduce(ctx, g, s, collective.Sum); err != nil {
					for i := range s {
						s[i]++
					}
					return
				}
				assert.Equal(t, want, s)
			}
		})
	}
}

// Bits do not depend on which rank folds what.
func TestRendezvousMemory(t *testing.T) {
	collectivetest.TestMemory(t, collectivetest.Local, func(_ testing.TB, _, bytes int) []byte {
		b, _ := collective.Of(make([]int64, (bytes+7)/8)).Host()
		return b[:bytes]
	}, 100<<10)
}

func TestManyRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	collectivetest.TestSize(t, collectivetest.Local, 64)
}

// Calls among many ranks allocate no memory.
func TestRendezvousAllocations(t *testing.T) {
	const ranks, runs = 8, 50
	for name, c := range map[string]func(ctx context.Context, g *collective.Group, s, all []float32) error{
		"Barrier": func(ctx context.Context, g *collective.Group, _, _ []float32) error { return g.Barrier(ctx) },
		"few": func(ctx context.Context, g *collective.Group, s, _ []float32) error {
			return collective.AllReduce(ctx, g, s[:1], collective.Sum)
		},
		"many": func(ctx context.Context, g *collective.Group, s, _ []float32) error {
			return collective.AllReduce(ctx, g, s, collective.Mean)
		},
		"AllGather": func(ctx context.Context, g *collective.Group, s, all []float32) error {
			return collective.AllGather(ctx, g, all, s[:1000])
		},
	} {
		t.Run(name, func(t *testing.T) {
			collectivetest.Ranks(t, ranks, func(ctx context.Context, g *collective.Group) {
				s, all := make([]float32, 100_000), make([]float32, 1000*ranks)
				for range 20 { // every rank has helped
					assert.NoError(t, c(ctx, g, s, all))
				}
				if g.Rank() > 0 {
					for range runs + 1 {
						assert.NoError(t, c(ctx, g, s, all))
					}
					return
				}
				assert.Zero(t, testing.AllocsPerRun(runs, func() { assert.NoError(t, c(ctx, g, s, all)) }))
			})
		})
	}
}
