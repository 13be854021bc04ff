package keyed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// connected returns the only client of servers, which serve until the test ends.
func connected(t *testing.T, groups []*collective.Group, servers []*Local) *Remote {
	t.Helper()
	require.Len(t, groups, 1+len(servers))
	var serving sync.WaitGroup
	for i, l := range servers {
		serving.Go(func() { assert.NoError(t, Serve(context.Background(), groups[1+i], len(servers), l)) })
	}
	s, err := Connect(t.Context(), groups[0], len(servers))
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.End(context.Background()))
		serving.Wait()
	})
	return s
}

// sgd subtracts the gradient.
func sgd() optim.SGD { return optim.SGD{LearnRate: optim.Constant(1)} }

// All goroutines of all clients count the same value down, and each its own.
func TestManyClients(t *testing.T) {
	const clients, goroutines, rounds = 3, 3, 20
	for name, connect := range over(t) {
		for servers := 1; servers <= 2; servers++ {
			t.Run(fmt.Sprintf("%s, %d servers", name, servers), func(t *testing.T) {
				held := locals(t, servers, sgd())
				with(t, connect(t, clients+servers), held, func(ctx context.Context, s *Remote) {
					each(goroutines, func(i int) {
						own := fmt.Sprintf("client %d goroutine %d", s.group.Rank(), i)
						assert.NoError(t, countDown(ctx, s, own, rounds))
					})
				})
				all := 0
				for _, l := range held {
					for key := range l.sizes() {
						all++
						v, version, err := l.Get(t.Context(), key)
						require.NoError(t, err)
						want := rounds
						if key == "shared" {
							want *= clients * goroutines
						}
						require.Equal(t, []float32{float32(-want)}, floats(t, v), key)
						require.EqualValues(t, 1+want, version, key)
					}
				}
				require.Equal(t, 1+clients*goroutines, all, "each key is on one server")
			})
		}
	}
}

// countDown pushes gradients for two keys, and pulls them. Copies only get newer.
func countDown(ctx context.Context, s Store, own string, rounds int) error {
	zero, err := store.Tensor([]float32{0})
	if err != nil {
		return err
	}
	one, err := store.Tensor([]float32{1})
	if err != nil {
		return err
	}
	for _, key := range []string{"shared", own} {
		var exists *store.VersionError
		if _, err := s.Set(ctx, key, zero, 0); err != nil && !errors.As(err, &exists) {
			return err
		}
	}
	copies := []Copy{{Key: "shared"}, {Key: own}}
	for i := range rounds {
		before := copies[0].Version
		if err := s.Push(ctx, Gradient{"shared", one}, Gradient{own, one}); err != nil {
			return err
		}
		if _, err := s.Pull(ctx, copies); err != nil {
			return err
		}
		for _, c := range copies {
			x, err := store.Floats[float32](c.Value)
			if err != nil || x[0] != 1-float32(c.Version) {
				return fmt.Errorf("%q is %v at version %d, %v", c.Key, x, c.Version, err)
			}
		}
		if copies[0].Version <= before || copies[1].Version != uint64(i+2) {
			return fmt.Errorf("round %d: version %d after %d, and %d of %q", i, copies[0].Version, before, copies[1].Version, own)
		}
	}
	return nil
}

// A value may be as large as MaxValue, which is many segments of a message. A larger one is
// refused.
func TestLargeValues(t *testing.T) {
	n := 1_000_003
	if collectivetest.Thorough() {
		n = store.MaxValue / 4
	}
	held := locals(t, 1, sgd())
	s := connected(t, clustered(cluster.Config{Transport: cluster.TransportTCP})(t, 2), held)
	x := random(1, n)
	_, err := s.Set(t.Context(), "w", tensor(t, x), 0)
	require.NoError(t, err)
	require.NoError(t, s.Push(t.Context(), Gradient{"w", tensor(t, x)}))
	v, _, err := s.Get(t.Context(), "w")
	require.NoError(t, err)
	require.Equal(t, make([]byte, 4*n), v.Data)
	_, err = s.Set(t.Context(), "w", store.Raw(make([]byte, store.MaxValue+1)), store.Any)
	require.ErrorIs(t, err, store.ErrRefused)
	require.ErrorContains(t, err, "split it")
}

// Servers hold about the same number of bytes.
func TestBalance(t *testing.T) {
	held := locals(t, 3, sgd())
	s := connected(t, collectivetest.Local(t, 4), held)
	for i, n := range []int{900, 600, 500, 400, 300, 300} {
		_, err := s.Set(t.Context(), fmt.Sprint("k", i), store.Raw(make([]byte, n)), 0)
		require.NoError(t, err)
	}
	for i, l := range held {
		sum := 0
		for _, n := range l.sizes() {
			sum += n
		}
		require.Equal(t, []int{1200, 900, 900}[i], sum)
	}
	_, err := s.Set(t.Context(), "k3", store.Raw(make([]byte, 5000)), 1)
	require.NoError(t, err)
	require.Contains(t, held[2].sizes(), "k3", "a key stays where it is")
}

// Two clients that create a key at once find the same server, and one of them creates it.
func TestBothCreate(t *testing.T) {
	const keys = 40
	held := locals(t, 3, sgd())
	created := make([]int, 2)
	with(t, collectivetest.Local(t, 5), held, func(ctx context.Context, s *Remote) {
		for i := range keys {
			_, err := s.Set(ctx, fmt.Sprint(i), store.Raw([]byte{byte(i)}), 0)
			var exists *store.VersionError
			if err == nil {
				created[s.group.Rank()]++
			} else if !assert.ErrorAs(t, err, &exists) {
				return
			}
		}
		all, err := s.Keys(ctx, "")
		assert.NoError(t, err)
		assert.Len(t, all, keys)
	})
	require.Equal(t, keys, created[0]+created[1])
}

// After a group has ended, the same Locals serve in another, whose clients find the keys.
// The group can make calls in between.
func TestServedAgain(t *testing.T) {
	held := locals(t, 2, sgd())
	groups := collectivetest.Local(t, 4)
	with(t, groups, held, func(ctx context.Context, s *Remote) {
		for i := range 4 {
			_, err := s.Set(ctx, fmt.Sprint("key ", s.group.Rank(), i), store.Raw([]byte{byte(i)}), 0)
			assert.NoError(t, err)
		}
	})
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) { assert.NoError(t, g.Barrier(ctx)) })
	for _, again := range [][]*collective.Group{groups, collectivetest.Local(t, 3)} {
		with(t, again, held, func(ctx context.Context, s *Remote) {
			for i := range 8 {
				v, _, err := s.Get(ctx, fmt.Sprint("key ", i/4, i%4))
				assert.NoError(t, err)
				assert.Equal(t, []byte{byte(i % 4)}, v.Data)
			}
		})
	}
}

// The end of a call's context breaks nothing, whether the call waits for its answer or to
// be sent. The answer changes nothing any more.
func TestCallsAreCancelled(t *testing.T) {
	held := locals(t, 1, sgd())
	s := connected(t, collectivetest.Local(t, 2), held)
	_, err := s.Set(t.Context(), "w", tensor(t, []float32{3}), 0)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	held[0].mu.Lock() // the server waits for it with the first request, and does not receive the second
	copies, results := [2]Copy{{Key: "w"}, {Key: "w"}}, make(chan int, 2)
	var errs [2]error
	for i := range copies {
		go func() {
			_, errs[i] = s.Pull(ctx, copies[i:i+1])
			results <- i
		}()
	}
	for s.waiting() < 2 {
		runtime.Gosched()
	}
	cancel()
	first := <-results
	require.ErrorIs(t, errs[first], context.Canceled)
	held[0].mu.Unlock()
	_, _, err = s.Get(t.Context(), "w") // its answer comes after the other two
	require.NoError(t, err)
	require.Equal(t, Copy{Key: "w"}, copies[first])
	if second := <-results; errs[second] != nil { // it may have been answered in time
		require.ErrorIs(t, errs[second], context.Canceled)
	}
}

// waiting returns the number of calls without an answer.
func (r *Remote) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// End ends the calls in progress, and those to come.
func TestCallsEnd(t *testing.T) {
	l := newLocal(t, sgd())
	collectivetest.Run(t, collectivetest.Local(t, 2), func(ctx context.Context, g *collective.Group) {
		if g.Rank() == 1 {
			assert.NoError(t, Serve(ctx, g, 1, l))
			return
		}
		s, err := Connect(ctx, g, 1)
		if !assert.NoError(t, err) {
			return
		}
		l.mu.Lock() // so that there is no answer
		var call, end sync.WaitGroup
		call.Go(func() {
			_, _, err := s.Get(ctx, "w")
			assert.ErrorIs(t, err, store.ErrClosed)
		})
		for s.waiting() == 0 {
			runtime.Gosched()
		}
		end.Go(func() { assert.NoError(t, s.End(ctx)) })
		call.Wait()
		l.mu.Unlock()
		end.Wait()
		_, err = s.Keys(ctx, "")
		assert.ErrorIs(t, err, store.ErrClosed)
	})
}

// Errors name the ranks of client and server, on one line.
func TestErrorsNameRanks(t *testing.T) {
	s := connected(t, collectivetest.Local(t, 2), locals(t, 1, sgd()))
	_, err := s.Set(t.Context(), "w", tensor(t, []float32{3}), 0)
	require.NoError(t, err)
	require.EqualError(t, s.Push(t.Context(), Gradient{"w", tensor(t, []float32{float32(math.NaN())})}),
		`keyed: rank 0 (local/0) asked rank 1 (local/1): refused: the gradient of "w" is not finite: lower the learn rate, or look at the data of that step`)
}
