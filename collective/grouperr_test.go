package collective_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
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
