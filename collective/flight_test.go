package collective_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

func TestFlightOfALateRank(t *testing.T) { collectivetest.TestFlight(t, collectivetest.Local) }

func TestLateCaller(t *testing.T) { collectivetest.TestLateCaller(t, collectivetest.Local) }

// The record holds the last calls, oldest first.
func TestFlightWraps(t *testing.T) {
	const more = 10
	collectivetest.Ranks(t, 2, func(ctx context.Context, g *collective.Group) {
		assert.Empty(t, g.Flight().Calls)
		for i := range collective.FlightCalls + more {
			g.Mark(uint64(i / 2))
			assert.NoError(t, collective.AllReduce(ctx, g, make([]int32, 1+i), collective.Max))
		}
		f := g.Flight()
		assert.Equal(t, g.View(), f.View)
		assert.Nil(t, f.InProgress())
		assert.Nil(t, f.Waiting)
		if !assert.Len(t, f.Calls, collective.FlightCalls) {
			return
		}
		for i, c := range f.Calls {
			n := uint64(more + i)
			assert.Equal(t, n+1, c.Seq)
			assert.Equal(t, n/2, c.Step)
			assert.Equal(t, n+1, c.Call.Count)
			assert.Equal(t, collective.KindAllReduce, c.Call.Kind)
			assert.True(t, c.Done)
			assert.NoError(t, c.Err)
			assert.False(t, c.Began.After(f.Taken))
			if i > 0 {
				assert.False(t, c.Began.Before(f.Calls[i-1].Began))
			}
		}
	})
}

// A reader during calls sees complete calls in order.
func TestFlightIsReadDuringCalls(t *testing.T) {
	groups := collectivetest.Local(t, 2)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				calls := groups[0].Flight().Calls
				for i, c := range calls {
					assert.Equal(t, c.Seq, c.Call.Count, "a call is not mixed from two")
					assert.Equal(t, calls[0].Seq+uint64(i), c.Seq)
					assert.True(t, c.Done || i == len(calls)-1)
				}
			}
		})
	}
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		for i := range 1000 {
			assert.NoError(t, collective.AllReduce(ctx, g, make([]int32, 1+i), collective.Max))
		}
	})
	close(stop)
	readers.Wait()
}

// A call that fails is in the record with its error, whichever rank caused it.
func TestFlightOfAFailure(t *testing.T) {
	groups := collectivetest.Local(t, 3)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		if g.Rank() == 2 {
			g.Abort(errors.New("out of disk"))
			return
		}
		err := g.Barrier(ctx)
		assert.ErrorContains(t, err, "out of disk")
		f := g.Flight()
		if assert.Len(t, f.Calls, 1) {
			assert.True(t, f.Calls[0].Done)
			assert.Equal(t, err, f.Calls[0].Err)
		}
		assert.Nil(t, f.Waiting)
	})
}

// recorder is a FlightObserver.
type recorder struct {
	called   []collective.Call
	recorded []collective.FlightCall
}

func (r *recorder) Called(c collective.Call, _, _ uint64, _ time.Duration, _ error) {
	r.called = append(r.called, c)
}

func (r *recorder) Recorded(c *collective.FlightCall) { r.recorded = append(r.recorded, *c) }

func TestFlightObserver(t *testing.T) {
	views, transports := collective.Local(2)
	var r recorder
	groups := []*collective.Group{
		collectivetest.Groups(t, views[:1], transports[:1], collective.Options{Observer: &r})[0],
		collectivetest.Groups(t, views[1:], transports[1:], collective.Options{})[0],
	}
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		assert.NoError(t, g.Barrier(ctx))
	})
	require.Len(t, r.called, 1)
	require.Len(t, r.recorded, 1)
	require.Equal(t, r.called[0], r.recorded[0].Call)
	require.True(t, r.recorded[0].Done)
	require.Positive(t, r.recorded[0].Took, "an observer gets the duration of a call, however short")
}
