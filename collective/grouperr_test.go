package collective_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// Asking a group for its error does not disturb its calls.
func TestErrBesideCalls(t *testing.T) {
	v := collective.View{Members: make([]collective.Member, 2)}
	g := collective.NewGroup(v, collective.OverTransport(v, idle{}), collective.Options{})
	defer g.Close()
	done := make(chan struct{})
	var asks sync.WaitGroup
	asks.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				assert.NoError(t, g.Err())
			}
		}
	})
	for range 50_000 {
		if !assert.NoError(t, collective.AllReduce(t.Context(), g, []float32{1}, collective.Sum)) {
			break
		}
	}
	close(done)
	asks.Wait()

	why := errors.New("enough")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	broken := collective.NewGroup(v, collective.OverTransport(v, stuck{}), collective.Options{})
	defer broken.Close()
	err := broken.Barrier(ended)
	require.ErrorIs(t, err, why)
	require.Equal(t, err, broken.Err())
}

// stuck is a transport whose barriers end with their context.
type stuck struct{ idle }

func (stuck) Abilities() collective.Abilities { return collective.Abilities{Post: idle{}} }

func (stuck) Send(ctx context.Context, _ int, _ *collective.Header, _ [][]byte) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func (stuck) Recv(ctx context.Context, _ int, _ *collective.Header, _ [][]byte) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// A group knows that a rank has failed before one of its own calls does.
func TestLost(t *testing.T) {
	groups := collectivetest.Local(t, 2)
	require.NoError(t, groups[0].Lost())
	groups[1].Abort(errors.New("the disk is full"))
	err := groups[0].Lost()
	require.EqualError(t, err, "rank 1 (local/1) failed in epoch 1: the disk is full (reported by rank 1)")
	var lost *collective.RankError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, 1, lost.Rank)
	require.NoError(t, groups[0].Err(), "no call has failed")

	err = groups[0].Barrier(t.Context())
	require.Error(t, err)
	require.Equal(t, err, groups[0].Lost())
}

// A later Abort does not hide the rank that broke the group.
func TestAbortKeepsTheFirstCause(t *testing.T) {
	groups := collectivetest.Local(t, 3)
	groups[2].Abort(errors.New("the disk is full"))
	groups[0].Abort(errors.New("a rank has failed"))
	for _, err := range []error{groups[0].Lost(), groups[0].Barrier(t.Context())} {
		var culprit *collective.RankError
		require.ErrorAs(t, err, &culprit)
		require.Equal(t, 2, culprit.Rank)
		require.ErrorContains(t, err, "the disk is full")
	}
}

// Abort needs no cause.
func TestAbortWithoutCause(t *testing.T) {
	groups := collectivetest.Local(t, 2)
	groups[0].Abort(nil)
	for _, g := range groups {
		require.ErrorContains(t, g.Barrier(t.Context()), "rank 0 (local/0) failed during Barrier() #1 in epoch 1: it aborted the group")
	}
}
