package paramserver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
)

// pushed is an Observer that gets a value for each AllToAllW that a server has made.
type pushed chan struct{}

func (p pushed) Called(c collective.Call, _, _ uint64, _ time.Duration, err error) {
	if c.Kind == collective.KindAllToAll && err == nil {
		p <- struct{}{}
	}
}

// observed returns groups of one worker and one server whose calls are observed.
func observed(t *testing.T, o collective.Observer) []*collective.Group {
	views, transports := collective.Local(2)
	groups := make([]*collective.Group, len(views))
	for i := range groups {
		var options collective.Options
		if i == 1 {
			options.Observer = o
		}
		groups[i] = collective.NewGroup(views[i], collective.OverTransport(views[i], transports[i]), options)
		t.Cleanup(func() { assert.NoError(t, groups[i].Close()) })
	}
	return groups
}

// A server has the gradients of the last parameters while the backward pass computes those
// before them.
func TestPushOverlapsTheBackwardPass(t *testing.T) {
	received := make(pushed, 100)
	groups := observed(t, received)
	var errs [2]error
	each(groups, func(rank int) {
		ctx, g := deadline(t), groups[rank]
		peers, err := g.Sub(ctx, rank, 0)
		require.NoError(t, err)
		defer peers.Close()
		if rank == 1 {
			errs[1] = serving(1)(ctx, g)
			return
		}
		b := cpu.New(cpu.Options{})
		defer b.Close()
		s := newSeat(t, b, g, peers)
		s.strategy.SetBucket(1)
		require.NoError(t, s.start(ctx))
		<-received // the values
		final := s.strategy.Open(ctx, s.params, trainer.Step{})
		for i := len(s.params.List) - 1; i >= 0; i-- {
			final(s.params.List[i].Offset)
			select {
			case <-received:
			case <-ctx.Done():
				errs[0] = errors.New("no gradients have come during the backward pass")
				g.Abort(errs[0])
				return
			}
		}
		report, err := s.strategy.Step(ctx, s.params, trainer.Step{Weight: 1})
		assert.NoError(t, err)
		assert.Equal(t, len(s.params.List), report.Buckets)
		errs[0] = End(ctx, g, 1)
	})
	require.NoError(t, errors.Join(errs[:]...))
}

// A worker that abandons a step after buckets have left ends the step on all others, with an
// error that names it.
func TestAbandonNamesTheWorker(t *testing.T) {
	why := errors.New("the data of this worker are damaged")
	errs := together(t, 2, 2, func(ctx context.Context, s *seat) error {
		s.strategy.SetBucket(1)
		assert.NoError(t, s.start(ctx))
		assert.NoError(t, s.step(ctx, .1))
		assert.NoError(t, s.workers.Barrier(ctx)) // both have taken the step
		before := s.values()
		if s.group.Rank() == 1 {
			s.strategy.Open(ctx, s.params, trainer.Step{Index: 1})(s.params.List[2].Offset)
			for _, w := range s.strategy.open.sender.works {
				assert.NoError(t, w.Wait(ctx)) // the others then wait for a bucket that does not come
			}
			s.strategy.Abandon(why)
			assert.ErrorContains(t, s.group.Lost(), why.Error())
			return nil
		}
		err := s.step(ctx, .2)
		assert.Equal(t, before, s.values())
		return err
	}, serving(2))
	for _, rank := range []int{0, 2, 3} {
		var lost *collective.RankError
		require.ErrorAs(t, errs[rank], &lost, "rank %d", rank)
		require.Equal(t, 1, failed(lost), "rank %d", rank)
		require.ErrorContains(t, errs[rank], why.Error())
	}
}

// A step that was opened and left nothing can be abandoned, and the next one made.
func TestAbandonBeforeABucket(t *testing.T) {
	errs := together(t, 2, 1, func(ctx context.Context, s *seat) error {
		s.strategy.SetBucket(1)
		assert.NoError(t, s.start(ctx))
		s.strategy.Open(ctx, s.params, trainer.Step{})
		s.strategy.Abandon(errors.New("no rows"))
		s.strategy.Abandon(nil)
		assert.NoError(t, s.step(ctx, .1))
		return End(ctx, s.group, 2)
	}, serving(2))
	require.NoError(t, errors.Join(errs...))
}

// Runs contain all elements of their pieces, and nothing of other parameters.
func TestRoutes(t *testing.T) {
	l := layout{Parameters: []parameter{{Len: 40}, {Offset: 48, Len: 16}, {Offset: 64, Len: 7}, {Offset: 80, Len: 9}, {Offset: 96, Len: 3}}, Buckets: []int{3, 1, 0}}
	shares := [][]piece{{{0, 0, 40}, {1, 0, 16}, {3, 0, 9}, {4, 0, 3}}, {{2, 0, 7}}}
	require.Equal(t, route{{{0, 0, 64}, {80, 64, 19}}, {{64, 0, 7}}}, routeOf(l, shares, 0, 5))
	require.Equal(t, []route{{{{80, 64, 19}}, nil}, {{{48, 48, 16}}, {{64, 0, 7}}}, {{{0, 0, 40}}, nil}}, routesOf(l, shares))
	l.Buckets = nil
	require.Equal(t, []route{routeOf(l, shares, 0, 5)}, routesOf(l, shares))
	require.Equal(t, 83, routesOf(l, shares)[0].elements(0))
	require.Equal(t, []int{3, 1, 0}, l.inBuckets([]int{32, 32, 48}).Buckets)
	require.Nil(t, l.inBuckets([]int{112}).Buckets)

	// A parameter of another server lies where there is padding here.
	l = layout{Parameters: []parameter{{Len: 8}, {Offset: 8, Len: 8}, {Offset: 16, Len: 8}}}
	require.Equal(t, route{{{0, 0, 8}, {16, 16, 8}}, {{8, 0, 8}}}, routeOf(l, [][]piece{{{0, 0, 8}, {2, 0, 8}}, {{1, 0, 8}}}, 0, 3))

	// A parameter that is cut: its pieces follow each other on one server.
	l = layout{Parameters: []parameter{{Len: 100}, {Offset: 112, Len: 10_000}}}
	require.Equal(t, route{{{0, 0, 100}, {4208, 112, 5904}}, {{112, 0, 4096}}}, routeOf(l, [][]piece{{{0, 0, 100}, {1, 4096, 8192}, {1, 8192, 10_000}}, {{1, 0, 4096}}}, 0, 2))
}
