package collective_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// aborted is a transport that only passes on why it was aborted.
type aborted struct {
	collective.Transport
	cause chan *collective.RankError
}

func (a aborted) Abort(cause *collective.RankError) { a.cause <- cause }

func TestAbortOnCancel(t *testing.T) {
	tr := aborted{cause: make(chan *collective.RankError, 1)}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := collective.AbortOnCancel(ctx, tr, 2)
	cancel(enough)
	cause := <-tr.cause
	require.Equal(t, 2, cause.Rank)
	require.Equal(t, "cancelled", cause.Phase)
	require.ErrorIs(t, cause, enough)
	require.False(t, stop(), "it has run")

	ctx, cancel = context.WithCancelCause(t.Context())
	stop = collective.AbortOnCancel(ctx, tr, 2)
	require.True(t, stop())
	cancel(enough)
	require.Empty(t, tr.cause)

	require.Zero(t, testing.AllocsPerRun(100, func() {
		collective.AbortOnCancel(context.Background(), &tr, 2)()
	}))
}
